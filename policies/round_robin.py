"""A rotation that a worker joining, leaving or being retried does not upset."""

import random

from radixgate.errors import NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.turns import Turns


class RoundRobin:
    """The candidate that was not chosen for the longest time; those never chosen come first.

    For a fixed set of candidates this is the plain rotation, in an order drawn at the start.
    """

    def __init__(self, rng: random.Random) -> None:
        self._turns = Turns(rng)

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        if not len(candidates):
            raise NoWorkerAvailable("no worker can be chosen")
        everyone = range(len(candidates))
        index = self._turns.next(candidates.ids, everyone)
        self._turns.took(candidates.ids, index)
        return Choice(index, "rotation", lambda: [float(other != index) for other in everyone])
