"""Live experiments on policies: what is recorded of one, and what may be concluded from it."""
