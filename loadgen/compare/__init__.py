"""One schedule under several policies or fleets, one after the other, and what differed."""
