"""Which workers may be chosen, and whether a failed attempt is tried again."""
