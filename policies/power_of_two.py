"""Two candidates at random, the less loaded wins: near the best balance for the price of a look."""

import random

from radixgate.errors import NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.requests_there import UNREPORTED, reported_at


class PowerOfTwo:
    """Load is counted in requests: those in flight from here, plus those the worker reports.

    Reports count only if both candidates have one, so that a missing report is never a small load.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(1). Raises NoWorkerAvailable if there are no candidates."""
        if not len(candidates):
            raise NoWorkerAvailable("no worker can be chosen")
        if len(candidates) == 1:
            return Choice(0, "single", lambda: [0.0])
        first, second = self._rng.sample(range(len(candidates)), 2)
        loads = _loads(candidates, first, second)
        index = first if loads[0] <= loads[1] else second
        drawn = {first: float(loads[0]), second: float(loads[1])}
        beyond = max(loads) + 1.0  # the score of those not drawn
        return Choice(
            index,
            "lighter_of_two",
            lambda: [drawn.get(other, beyond) for other in range(len(candidates))],
        )


def _loads(candidates: Candidates, first: int, second: int) -> tuple[int, int]:
    """Requests at both, in one unit: with reports if both have them, else our own count."""
    reported = reported_at(candidates, first), reported_at(candidates, second)
    own = candidates.requests_in_flight
    if UNREPORTED in reported:
        return own[first], own[second]
    return own[first] + reported[0], own[second] + reported[1]
