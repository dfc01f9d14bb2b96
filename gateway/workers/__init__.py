"""The workers, each kind behind the same interface, and the list of who is here and well."""
