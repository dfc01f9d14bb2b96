"""The engine: one process, one model replica on one node."""
