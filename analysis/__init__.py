"""Statistics: pure functions over records."""
