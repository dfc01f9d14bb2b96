"""The engine: its parts put together, its core, and the thread it runs in."""
