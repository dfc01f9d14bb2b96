"""The least expected cost in seconds: what the request waits for, and what it makes others wait."""

import random
import statistics
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_finite
from radixgate.errors import ConfigError, NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.cheapest import Weights, cheapest, ranked
from radixgate.policies.derived import Derived
from radixgate.policies.fewest import fewest
from radixgate.policies.kv_share import fullest
from radixgate.policies.popular_prefix import is_scarce
from radixgate.policies.queued_tokens import queued_tokens
from radixgate.policies.requests_there import requests_there
from radixgate.policies.session_homes import SessionHomes
from radixgate.policies.slo import Slo
from radixgate.policies.turns import Turns

# Taken while no worker's speed is known. It cancels out but for the terms in plain seconds.
_SPEED_GUESS = 1_000.0
# From here on a KV pool is under pressure.
_FULL = 0.9


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
        check_finite(self)
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
    R: its measured prefill speed. How requests in flight count: `cheapest.Weights`.
    """

    def __init__(self, config: KvCostConfig, rng: random.Random, slo: Slo | None = None) -> None:
        """`slo`: times to be kept; None: only the costs count."""
        self._home_margin = config.kv_cost_home_margin
        self._weights = Weights(config.kv_cost_stall_weight, config.kv_cost_crowd_weight)
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
        prompt_tokens, session = request.prompt_tokens, request.session
        cached = candidates.read_cached_tokens()
        queued = queued_tokens(candidates)
        speeds = self._speeds.of(candidates.prefill_tokens_per_s)
        most = candidates.most_kv_share
        nobody_full = most is not None and most <= _FULL
        costs, least, equals, best, holders = cheapest(
            self._weights,
            prompt_tokens,
            queued,
            cached,
            requests_there(candidates),
            speeds,
            {} if nobody_full else self._pressure_s.of(candidates.kv_share_used),
        )
        late = False
        if self._slo is not None:
            weighed = self._slo.weigh(_seconds(costs), prompt_tokens, candidates, cached, speeds)
            late = weighed.late
            costs, least, equals, best, holders = ranked(self._weights, weighed.costs, cached)
        index, branch = None, "home"
        if session and (home := self._home_of(session, ids)) is not None:
            margin = self._home_margin * prompt_tokens / speeds[home]
            index = home if _seconds(costs)[home] <= least + margin else None
        if index is None:
            branch = "hit" if cached[best] else "miss"
            if cached[best] and is_scarce(candidates, best, holders):
                # As if nobody had it: the least busy computes it once more, and then holds it too.
                branch, equals = "spread", fewest(queued, range(len(ids)))
            equals = fewest(candidates.requests_in_flight, equals)  # our own, then by turn
            index = equals[0] if len(equals) == 1 else self._turns.next(ids, equals)
            self._turns.took(ids, index)
        if session:
            self._homes.settle(session, ids[index])
        return Choice(index, "late" if late else branch, partial(_seconds, costs))

    def _home_of(self, session: str, ids: Sequence[str]) -> int | None:
        """Where the session was last; None: it was nowhere, or that worker is no candidate."""
        home = self._homes.of(session)
        return None if home is None or home not in ids else ids.index(home)


def _seconds(costs: bytes) -> list[float]:
    return array("d", costs).tolist()


def _speeds(measured: Sequence[float | None]) -> Sequence[float]:
    """Tokens a second of each, one that has not told being as fast as the median."""
    known = list(filter(None, measured))
    usual = statistics.median(known) if known else _SPEED_GUESS
    speeds = [speed or usual for speed in measured]
    # Equal ones are one object, so that a decision touches as little memory as can be.
    one = {speed: speed for speed in speeds}
    return [one[speed] for speed in speeds]


def _pressure_s(shares: Sequence[float | None], whole_s: float) -> Mapping[int, float]:
    """Seconds that a candidate costs more, by index, as its KV pool is nearly full."""
    if fullest(shares) <= _FULL:
        return {}
    return {
        index: whole_s * (used - _FULL) * 10.0
        for index, used in enumerate(shares)
        if used is not None and used > _FULL
    }
