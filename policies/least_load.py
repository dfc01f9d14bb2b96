"""The fewest prompt tokens still to be computed, whatever is cached where."""

import random

from radixgate.errors import NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.fewest import fewest
from radixgate.policies.queued_tokens import queued_tokens
from radixgate.policies.turns import Turns


class LeastLoad:
    """By queued tokens, then by requests in flight, then by turn."""

    def __init__(self, rng: random.Random) -> None:
        self._turns = Turns(rng)

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        if not len(candidates):
            raise NoWorkerAvailable("no worker can be chosen")
        queued = queued_tokens(candidates)
        equals = fewest(queued, range(len(queued)))
        equals = fewest(candidates.requests_in_flight, equals)
        chosen = self._turns.next(candidates.ids, equals)
        self._turns.took(candidates.ids, chosen)
        return Choice(chosen, "least", lambda: [float(tokens) for tokens in queued])
