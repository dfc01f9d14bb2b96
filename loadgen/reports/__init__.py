"""What a run leaves behind, and the reports that are made of it."""
