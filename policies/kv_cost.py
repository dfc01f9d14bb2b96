"""The least expected cost in seconds: what the request waits for, and what it makes others wait."""

import math
import random
import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import add, mul, sub, truediv

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError, NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.derived import Derived
from radixgate.policies.popular_prefix import is_scarce
from radixgate.policies.queued_tokens import queued_tokens
from radixgate.policies.requests_there import requests_there
from radixgate.policies.session_homes import SessionHomes
from radixgate.policies.slo import Slo
from radixgate.policies.turns import Turns

# Taken while no worker's speed is known. It cancels out but for the terms in plain seconds.
_SPEED_GUESS = 1_000.0
# A worker with less than the fleet's mean by this factor is nearly idle.
_IDLE = 4.0
# Among few requests a difference of one is no crowd.
_FEW = 4.0
# A worker is overcrowded beyond the mean and six times its root, which chance does not bring
# together, and 16 at least. Hardly anything that it has cached is worth it: each request beyond
# costs as much as the computation of so many prompt tokens.
_CROWD_DEVIATIONS = 6.0
_CROWD_LEAD = 16.0
_CROWDED_TOKENS = 20_000.0
# From here on a KV pool is under pressure.
_FULL = 0.9
# Costs so close are equal: 2 % and a millisecond.
_EQUAL_SHARE = 0.02
_EQUAL_S = 0.001


@dataclass(frozen=True, slots=True)
class KvCostConfig:
    """The weights of the terms. The defaults are those of the tables in docs/performance.md."""

    kv_cost_stall_weight: float = knob(
        0.3,
        help="kv_cost: a second of prefill counts so much more for each request in flight at a "
        "worker, on the fleet's average",
    )
    kv_cost_crowd_weight: float = knob(
        2.0,
        help="kv_cost: and so much more at a worker with twice the average of the requests",
    )
    kv_cost_pressure_s: float = knob(
        5.0, help="kv_cost: what a wholly full KV pool costs; from 90 % on in proportion", unit="s"
    )
    kv_cost_home_margin: float = knob(
        0.5,
        help="kv_cost: a session leaves its worker when that is dearer than the cheapest by more "
        "than such a share of what the whole prompt costs to compute",
    )

    def __post_init__(self) -> None:
        for name in (
            "kv_cost_stall_weight",
            "kv_cost_crowd_weight",
            "kv_cost_pressure_s",
            "kv_cost_home_margin",
        ):
            value = getattr(self, name)
            if not value >= 0.0:
                raise ConfigError(f"{name} is {value:g}, it cannot be negative")


class KvCost:
    """Q/R + u/R x (1 + what it makes others wait) + pressure; docs/policies.md has all of it.

    Q: prompt tokens that wait at the worker. u: tokens of this prompt it would have to compute.
    R: its measured prefill speed. Requests in flight are the fleet's mean, so that the weight of a
    miss grows with the backlog and is the same wherever there is a crowd; at a worker with less
    than a quarter of the mean they are four times its own. What lies far beyond the mean is dear.
    """

    def __init__(self, config: KvCostConfig, rng: random.Random, slo: Slo | None = None) -> None:
        """`slo`: times to be kept; None: only the costs count."""
        self._config = config
        self._slo = slo
        self._turns = Turns(rng)
        self._homes = SessionHomes()
        self._speeds = Derived(_speeds)
        self._fullest = Derived(_fullest)

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        ids = candidates.ids
        if not ids:
            raise NoWorkerAvailable("no worker can be chosen")
        cached = candidates.read_cached_tokens()
        speeds = self._speeds.of(candidates.prefill_tokens_per_s)
        costs = self._costs(request.prompt_tokens, candidates, cached, speeds)
        late = False
        if self._slo is not None:
            weighed = self._slo.weigh(costs, request.prompt_tokens, candidates, cached, speeds)
            costs, late = weighed.costs, weighed.late
        least = min(costs)
        index, branch = None, "home"
        if request.session:
            index = self._home_of(request, ids, costs, least, speeds)
        if index is None:
            index, branch = self._cheapest(candidates, cached, costs, least)
        if late:
            branch = "late"
        if request.session:
            self._homes.settle(request.session, ids[index])
        return Choice(index, branch, lambda: costs)

    def _costs(
        self,
        prompt_tokens: int,
        candidates: Candidates,
        cached: Sequence[int],
        speeds: Sequence[float],
    ) -> list[float]:
        """Seconds, a candidate each."""
        requests = requests_there(candidates)
        weights, crowded = self._weights(set(requests), sum(requests) / len(requests))
        if max(cached) >= prompt_tokens:
            cached = [min(tokens, prompt_tokens - 1) for tokens in cached]
        waiting: Sequence[float] = queued_tokens(candidates)
        if crowded:
            waiting = [
                tokens + crowded.get(count, 0.0)
                for tokens, count in zip(waiting, requests, strict=True)
            ]
        factors: Iterable[float] = map(weights.__getitem__, requests)
        if len(weights) == 1:
            factors = repeat(weights[requests[0]])
        # (waiting + (prompt - cached) x weight) / speed. For 256 candidates a loop takes twice as
        # long, for eight as long.
        own = map(sub, repeat(prompt_tokens), cached)
        costs = list(map(truediv, map(add, waiting, map(mul, own, factors)), speeds))
        shares = candidates.kv_share_used
        if self._fullest.of(shares) > _FULL:
            for index, used in enumerate(shares):
                if used is not None and used > _FULL:
                    costs[index] += self._config.kv_cost_pressure_s * (used - _FULL) * 10.0
        return costs

    def _weights(
        self, counts: Collection[int], mean: float
    ) -> tuple[dict[int, float], dict[int, float]]:
        """By the requests of a worker: how many seconds a second of prefill there costs all who are
        concerned; and where there is a crowd, the tokens it counts for. Mostly few differ."""
        stall = self._config.kv_cost_stall_weight
        crowd = self._config.kv_cost_crowd_weight / (mean + _FEW)
        full = mean + max(_CROWD_LEAD, _CROWD_DEVIATIONS * math.sqrt(mean))
        weights, crowded = {}, {}
        for count in counts:
            weight = 1.0 + stall * min(mean, _IDLE * count)
            if count > mean:
                weight += crowd * (count - mean)
            if count > full:
                crowded[count] = _CROWDED_TOKENS * (count - full)
            weights[count] = weight
        return weights, crowded

    def _cheapest(
        self,
        candidates: Candidates,
        cached: Sequence[int],
        costs: Sequence[float],
        least: float,
    ) -> tuple[int, str]:
        limit = least * (1.0 + _EQUAL_SHARE) + _EQUAL_S
        equals = [index for index, cost in enumerate(costs) if cost <= limit]
        best = equals[0] if len(equals) == 1 else max(equals, key=cached.__getitem__)
        if not cached[best]:
            return self._least_busy(candidates, equals), "miss"
        branch = "hit"
        if is_scarce(candidates, cached, best):
            # As if nobody had it: the least busy computes it once more, and then holds it too.
            branch = "spread"
            queued = queued_tokens(candidates)
            fewest = min(queued)
            if queued.count(fewest) == len(queued):
                return self._least_busy(candidates, range(len(queued))), branch
            equals = [index for index, tokens in enumerate(queued) if tokens == fewest]
        return self._least_busy(candidates, equals), branch

    def _home_of(
        self,
        request: RouteRequest,
        ids: Sequence[str],
        costs: Sequence[float],
        least: float,
        speeds: Sequence[float],
    ) -> int | None:
        """Where the session was last; None: there is none, or it is too dear now."""
        home = self._homes.of(request.session)
        if home is None or home not in ids:
            return None
        index = ids.index(home)
        margin = self._config.kv_cost_home_margin * request.prompt_tokens / speeds[index]
        return index if costs[index] <= least + margin else None

    def _least_busy(self, candidates: Candidates, equals: Sequence[int]) -> int:
        """By requests, then by turn."""
        if len(equals) > 1:
            requests = counts = candidates.requests_in_flight
            if len(equals) < len(requests):
                counts = [requests[index] for index in equals]
            fewest = min(counts)
            if counts.count(fewest) < len(counts):
                equals = [index for index in equals if requests[index] == fewest]
        chosen = equals[0] if len(equals) == 1 else self._turns.next(candidates.ids, equals)
        self._turns.took(candidates.ids, chosen)
        return chosen


def _speeds(measured: Sequence[float | None]) -> Sequence[float]:
    """Tokens a second of each; one that has not told is as fast as the median."""
    known = list(filter(None, measured))
    if len(known) == len(measured):
        return known
    usual = statistics.median(known) if known else _SPEED_GUESS
    return [speed or usual for speed in measured]


def _fullest(shares: Sequence[float | None]) -> float:
    """The largest share of a KV pool in use that anybody tells."""
    return max(filter(None, shares), default=0.0)
