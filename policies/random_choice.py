"""Uniform choice; the measure that every other policy has to beat."""

import random

from radixgate.errors import NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest


class RandomChoice:
    """Every candidate is as likely as any other."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(1). Raises NoWorkerAvailable if there are no candidates."""
        if not len(candidates):
            raise NoWorkerAvailable("no worker can be chosen")
        count = len(candidates)
        return Choice(self._rng.randrange(count), "random", lambda: [0.0] * count)
