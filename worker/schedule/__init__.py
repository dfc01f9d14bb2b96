"""Who computes what in the next step, and which pages it has."""
