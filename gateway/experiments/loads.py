"""Prompt tokens that are being computed, by worker, as one set of placements would have it."""

from collections import Counter


class Loads:
    """Each placement is added once and taken out once."""

    def __init__(self) -> None:
        self._tokens: Counter[str] = Counter()

    def add(self, worker: str, tokens: int) -> None:
        self._tokens[worker] += tokens

    def take(self, worker: str, tokens: int) -> None:
        self._tokens[worker] -= tokens
        if not self._tokens[worker]:
            del self._tokens[worker]

    def imbalance(self, workers: int) -> float:
        """The busiest of so many workers over their mean; 1: even, 0: nothing is computed."""
        total = sum(self._tokens.values())
        return max(self._tokens.values()) * workers / total if total else 0.0
