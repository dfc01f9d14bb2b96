"""How to choose a worker; one file a policy."""
