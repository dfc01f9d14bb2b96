"""The oracle, and the rules of other routers from their public descriptions.

Each is written down as its authors publish it, so that a comparison is with their rule and not with
a better one of ours. Only the simulator sees them.
"""

import random
from collections.abc import Sequence

from radixgate.errors import NoWorkerAvailable
from radixgate.loadgen.simulator.truth import Truth
from radixgate.policies.base import Candidates, Choice, RouteRequest


class FewestQueuedTokens:
    """The fewest prompt tokens still to be computed.

    Over one cache that all workers share, this is the oracle: no choice costs a hit.
    """

    def __init__(self, truth: Truth, rng: random.Random) -> None:
        self._truth = truth
        self._rng = rng

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        _need_some(candidates)
        return _least(self._truth.owed_tokens(candidates.ids), self._rng, "oracle")


class SglangCacheAware:
    """SGLang's cache_aware: 0.3, 64, 1.5; a miss to the fewest requests in flight.

    The gate is the fleet's: while it is open, every request goes to the fewest requests.
    """

    def __init__(
        self,
        rng: random.Random,
        cache_threshold: float = 0.3,
        balance_abs: int = 64,
        balance_rel: float = 1.5,
    ) -> None:
        self._rng = rng
        self._cache_threshold = cache_threshold
        self._balance_abs = balance_abs
        self._balance_rel = balance_rel

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        _need_some(candidates)
        loads = candidates.requests_in_flight
        most, least = max(loads), min(loads)
        if most - least > self._balance_abs and most > least * self._balance_rel:
            return _least(loads, self._rng, "imbalance")
        cached = candidates.read_cached_tokens()
        if max(cached) > self._cache_threshold * request.prompt_tokens:
            return _least([-tokens for tokens in cached], self._rng, "hit")
        return _least(loads, self._rng, "miss")


class DynamoCost:
    """Dynamo's linear cost: prefill blocks still to be computed plus blocks that are held."""

    def __init__(self, truth: Truth, rng: random.Random, block_size: int = 512) -> None:
        self._truth = truth
        self._rng = rng
        self._block_size = block_size

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        _need_some(candidates)
        cached = candidates.read_cached_tokens()
        owed = self._truth.owed_tokens(candidates.ids)
        held = self._truth.kv_blocks(candidates.ids)
        costs = [
            (owed[i] + request.prompt_tokens - cached[i]) / self._block_size + held[i]
            for i in range(len(candidates))
        ]
        return _least(costs, self._rng, "cost")


class LlmdScorer:
    """llm-d's blend: three parts prefix, two parts queue, two parts free KV, each from 0 to 1."""

    def __init__(self, truth: Truth, rng: random.Random) -> None:
        self._truth = truth
        self._rng = rng

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        _need_some(candidates)
        cached = candidates.read_cached_tokens()
        waiting = self._truth.waiting(candidates.ids)
        used = self._truth.kv_share(candidates.ids)
        most, least = max(waiting), min(waiting)
        costs = []
        for i in range(len(candidates)):
            prefix = cached[i] / max(1, request.prompt_tokens)
            queue = (most - waiting[i]) / (most - least) if most > least else 1.0
            costs.append(-(3.0 * prefix + 2.0 * queue + 2.0 * (1.0 - used[i])))
        return _least(costs, self._rng, "blend")


class LlmdSticky:
    """llm-d's sticky-until-saturated: among warm workers, unless they are 18 s behind cold ones."""

    def __init__(
        self,
        rng: random.Random,
        warm_share: float = 0.8,
        most_behind_s: float = 18.0,
        peak_tokens_per_s: float = 20_000.0,
    ) -> None:
        self._rng = rng
        self._warm_share = warm_share
        self._most_behind_tokens = most_behind_s * peak_tokens_per_s

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        _need_some(candidates)
        cached = candidates.read_cached_tokens()
        queued = candidates.uncached_tokens_in_flight
        everyone = range(len(candidates))
        enough = self._warm_share * request.prompt_tokens
        warm = [i for i in everyone if cached[i] >= enough]
        cold = [i for i in everyone if cached[i] < enough]
        kept: Sequence[int] = everyone
        branch = "miss"
        if warm:
            behind = min(queued[i] for i in warm) - min((queued[i] for i in cold), default=0)
            if not cold or behind <= self._most_behind_tokens:
                kept, branch = warm, "warm"
            else:
                branch = "saturated"
        among = frozenset(kept)
        costs = [
            float(queued[i] + request.prompt_tokens - cached[i]) if i in among else float("inf")
            for i in everyone
        ]
        return _least(costs, self._rng, branch)


def _need_some(candidates: Candidates) -> None:
    if not len(candidates):
        raise NoWorkerAvailable("no worker can be chosen")


def _least(costs: Sequence[float], rng: random.Random, branch: str) -> Choice:
    """The least cost; equals by lot."""
    least = min(costs)
    equals = [index for index, cost in enumerate(costs) if cost == least]
    chosen = equals[0] if len(equals) == 1 else rng.choice(equals)
    return Choice(chosen, branch, lambda: [float(cost) for cost in costs])
