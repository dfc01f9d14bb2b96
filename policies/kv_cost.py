"""The least expected cost in seconds: what the request waits for, and what it makes others wait."""

import math
import random
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import add, mul, sub, truediv

import msgspec

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError, NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.derived import Derived
from radixgate.policies.fewest import fewest
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
# Among so many it pays to find first who may be among the cheapest at all.
_MANY = 32
# More than rounding does to a cost.
_ROUNDING = 1.0 + 1e-9


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


class Terms(msgspec.Struct, frozen=True):
    """What the costs of one request are made of, in columns that do not change."""

    prompt_tokens: int
    waiting: Sequence[float]  # prompt tokens that are computed before ours
    cached: Sequence[int]  # of ours
    requests: Sequence[int]
    weights: Mapping[int, float]  # by requests: what a second of prefill costs all concerned
    speeds: Sequence[float]  # prompt tokens a second
    fastest: float
    pressure_s: Mapping[int, float]  # of those candidates whose KV pool is nearly full

    def costs(self, among: Sequence[int]) -> list[float]:
        """Seconds of each of these candidates: (waiting + (prompt - cached) x weight) / speed, and
        the pressure. O(among)."""
        waiting: Iterable[float] = self.waiting
        cached: Iterable[int] = self.cached
        requests: Iterable[int] = self.requests
        speeds: Iterable[float] = self.speeds
        if len(among) < len(self.cached):
            waiting = map(self.waiting.__getitem__, among)
            cached = map(self.cached.__getitem__, among)
            requests = map(self.requests.__getitem__, among)
            speeds = map(self.speeds.__getitem__, among)
        factors: Iterable[float] = map(self.weights.__getitem__, requests)
        if len(self.weights) == 1:
            factors = repeat(*self.weights.values())
        # For 256 candidates a loop takes twice as long, for eight as long.
        own = map(sub, repeat(self.prompt_tokens), cached)
        costs = list(map(truediv, map(add, waiting, map(mul, own, factors)), speeds))
        if self.pressure_s:
            for at, index in enumerate(among):
                costs[at] += self.pressure_s.get(index, 0.0)
        return costs

    def contenders(self, most_cached: int) -> tuple[Sequence[int], list[float]]:
        """All that may be among the cheapest, and their costs: who has so little cached that what
        is left costs more, were it idle and fast, is none. O(candidates), mostly a fifth of what
        all costs take."""
        warmest = self.cached.index(most_cached)
        known = self.costs((warmest,))
        own = equal_to(known[0]) * self.fastest / min(self.weights.values()) * _ROUNDING
        everyone = range(len(self.cached))
        if own >= self.prompt_tokens:
            return everyone, self.costs(everyone)
        least = math.ceil(self.prompt_tokens - own)  # whole numbers compare twice as fast
        some = [index for index, tokens in enumerate(self.cached) if tokens >= least]
        if len(some) == 1:
            return some, known
        among = some if 2 * len(some) < len(everyone) else everyone
        return among, self.costs(among)


def equal_to(cost: float) -> float:
    """What does not cost more than so many seconds costs as much."""
    return cost * (1.0 + _EQUAL_SHARE) + _EQUAL_S


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
        self._pressure_s = Derived(lambda shares: _pressure_s(shares, config.kv_cost_pressure_s))

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        ids = candidates.ids
        if not ids:
            raise NoWorkerAvailable("no worker can be chosen")
        cached = candidates.read_cached_tokens()
        most = max(cached)
        queued = queued_tokens(candidates)
        terms = self._terms(request.prompt_tokens, candidates, cached, most, queued)
        everyone, late = range(len(ids)), False
        among: Sequence[int] = everyone
        if self._slo is not None:
            costs, late = self._with_slo(self._slo, terms, candidates, cached)
        elif len(ids) > _MANY:
            among, costs = terms.contenders(min(most, request.prompt_tokens - 1))
        else:
            costs = terms.costs(everyone)
        of_all = len(among) == len(ids)  # the costs; else of some only
        index, branch, least = None, "home", min(costs)
        if request.session and (home := self._home_of(request.session, ids)) is not None:
            cost = costs[home] if of_all else terms.costs((home,))[0]
            margin = self._config.kv_cost_home_margin * request.prompt_tokens / terms.speeds[home]
            index = home if cost <= least + margin else None
        if index is None:
            limit = equal_to(least)
            equals = [at for at, cost in zip(among, costs, strict=True) if cost <= limit]
            index, branch = self._cheapest(candidates, cached, equals, most, queued)
        if request.session:
            self._homes.settle(request.session, ids[index])
        explain = (lambda: costs) if of_all else lambda: terms.costs(everyone)
        return Choice(index, "late" if late else branch, explain)

    def _terms(
        self,
        prompt_tokens: int,
        candidates: Candidates,
        cached: Sequence[int],
        most: int,
        waiting: Sequence[float],
    ) -> Terms:
        """`most`: the largest of `cached`."""
        requests = requests_there(candidates)
        weights, crowded = self._weights(set(requests), sum(requests) / len(requests))
        if most >= prompt_tokens:
            cached = [min(tokens, prompt_tokens - 1) for tokens in cached]
        if crowded:
            waiting = [
                tokens + crowded.get(count, 0.0)
                for tokens, count in zip(waiting, requests, strict=True)
            ]
        speeds, fastest = self._speeds.of(candidates.prefill_tokens_per_s)
        pressure_s = self._pressure_s.of(candidates.kv_share_used)
        return Terms(prompt_tokens, waiting, cached, requests, weights, speeds, fastest, pressure_s)

    def _with_slo(
        self, slo: Slo, terms: Terms, candidates: Candidates, cached: Sequence[int]
    ) -> tuple[list[float], bool]:
        """Of everyone; and whether nobody can bring the first token in time."""
        costs = terms.costs(range(len(candidates.ids)))
        weighed = slo.weigh(costs, terms.prompt_tokens, candidates, cached, terms.speeds)
        return weighed.costs, weighed.late

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
        equals: Sequence[int],
        most: int,
        queued: Sequence[int],
    ) -> tuple[int, str]:
        """Of the cheapest candidates one; `most`: the largest of `cached`."""
        best = equals[0] if len(equals) == 1 else max(equals, key=cached.__getitem__)
        if not cached[best]:
            return self._least_busy(candidates, equals), "miss"
        branch = "hit"
        if is_scarce(candidates, cached, best, most):
            # As if nobody had it: the least busy computes it once more, and then holds it too.
            branch = "spread"
            equals = fewest(queued, range(len(queued)))
        return self._least_busy(candidates, equals), branch

    def _home_of(self, session: str, ids: Sequence[str]) -> int | None:
        """Where the session was last; None: it was nowhere, or that worker is no candidate."""
        home = self._homes.of(session)
        return None if home is None or home not in ids else ids.index(home)

    def _least_busy(self, candidates: Candidates, equals: Sequence[int]) -> int:
        """By our own requests, then by turn."""
        equals = fewest(candidates.requests_in_flight, equals)
        chosen = equals[0] if len(equals) == 1 else self._turns.next(candidates.ids, equals)
        self._turns.took(candidates.ids, chosen)
        return chosen


def _speeds(measured: Sequence[float | None]) -> tuple[Sequence[float], float]:
    """Tokens a second of each, one that has not told being as fast as the median; and the most."""
    known = list(filter(None, measured))
    if len(known) == len(measured):
        return known, max(known)
    usual = statistics.median(known) if known else _SPEED_GUESS
    return [speed or usual for speed in measured], max(known, default=usual)


def _pressure_s(shares: Sequence[float | None], whole_s: float) -> Mapping[int, float]:
    """Seconds that a candidate costs more, by index, as its KV pool is nearly full."""
    if max(filter(None, shares), default=0.0) <= _FULL:
        return {}
    return {
        index: whole_s * (used - _FULL) * 10.0
        for index, used in enumerate(shares)
        if used is not None and used > _FULL
    }
