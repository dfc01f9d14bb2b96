"""LMetric: prompt tokens to be computed, times requests. It needs no weight, as units cancel."""

import random

from radixgate.errors import NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.fewest import fewest
from radixgate.policies.queued_tokens import queued_tokens
from radixgate.policies.turns import Turns


class LMetric:
    """The least (queued tokens + own uncached tokens) x (requests in flight + 1); else by turn."""

    def __init__(self, rng: random.Random) -> None:
        self._turns = Turns(rng)

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        if not len(candidates):
            raise NoWorkerAvailable("no worker can be chosen")
        cached = candidates.read_cached_tokens()
        queued = queued_tokens(candidates)
        requests = candidates.requests_in_flight
        products = [
            # A prompt's last token is never cached, so that no product is zero.
            (queued[index] + max(1, request.prompt_tokens - cached[index])) * (requests[index] + 1)
            for index in range(len(candidates))
        ]
        equals = fewest(products, range(len(products)))
        chosen = self._turns.next(candidates.ids, equals)
        self._turns.took(candidates.ids, chosen)
        branch = "hit" if cached[chosen] else "miss"
        return Choice(chosen, branch, lambda: [float(product) for product in products])
