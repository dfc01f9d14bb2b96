"""Models on disk: found by name, their shape read, their tensors opened in one form."""
