"""SGLang's cache_aware as its three knobs define it, with ties broken at random."""

import random
from collections.abc import Sequence

from radixgate.errors import NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest

CACHE_THRESHOLD = 0.3
BALANCE_ABS_THRESHOLD = 64
BALANCE_REL_THRESHOLD = 1.5


class CacheThresholds:
    """Where more than a share of the prompt is cached, unless that worker is too busy.

    Too busy is judged for each worker: more than `balance_abs` requests beyond the least busy one,
    and more than `balance_rel` times as many. Else the fewest requests in flight.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        cache_threshold: float = CACHE_THRESHOLD,
        balance_abs: int = BALANCE_ABS_THRESHOLD,
        balance_rel: float = BALANCE_REL_THRESHOLD,
    ) -> None:
        self._rng = rng
        self._cache_threshold = cache_threshold
        self._balance_abs = balance_abs
        self._balance_rel = balance_rel

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        if not len(candidates):
            raise NoWorkerAvailable("no worker can be chosen")
        cached = candidates.read_cached_tokens()
        loads = candidates.requests_in_flight
        enough = self._cache_threshold * request.prompt_tokens
        warm = [index for index, tokens in enumerate(cached) if tokens > enough]
        free = [index for index in warm if not self._too_busy(loads[index], min(loads))]
        if free:
            branch = "hit"
            best = min(free, key=lambda index: (-cached[index], loads[index], self._rng.random()))
        else:
            branch = "imbalance" if warm else "miss"
            best = min(range(len(candidates)), key=lambda index: (loads[index], self._rng.random()))
        return Choice(best, branch, lambda: _scores(request.prompt_tokens, cached, loads, free))

    def _too_busy(self, load: int, least: int) -> bool:
        return load - least > self._balance_abs and load > least * self._balance_rel


def _scores(
    prompt_tokens: int, cached: Sequence[int], loads: Sequence[int], free: Sequence[int]
) -> list[float]:
    """With hits: tokens to compute, and what is no hit behind them all. Without: the loads."""
    if not free:
        return [float(load) for load in loads]
    hits = frozenset(free)
    return [
        float(prompt_tokens - tokens if index in hits else prompt_tokens + 1)
        for index, tokens in enumerate(cached)
    ]
