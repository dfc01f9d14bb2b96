"""How requests come in: connections of clients, keys, limits, and the line of those who wait."""
