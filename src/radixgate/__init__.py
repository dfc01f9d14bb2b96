"""radixgate: the front door for fleets of LLM workers, and the workers themselves."""

__version__ = "0.1.0"
