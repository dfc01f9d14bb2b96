"""What a worker may be told: its engine under SGLang's names, and where it listens."""
