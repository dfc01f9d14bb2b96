"""The event loop: what one turn of it does in a row, and deadlines that cost nothing to move."""
