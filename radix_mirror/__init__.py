"""What the gateway believes each worker holds in its prefix cache."""
