"""kv_cost counts what workers have in common once; each by itself would cost the same."""

import math
import random
import statistics
from dataclasses import dataclass

import hypothesis.strategies as st
import msgspec
from hypothesis import given

from columns import PROMPT, columns
from radixgate.policies.kv_cost import KvCost, KvCostConfig


@dataclass(frozen=True, slots=True)
class Seen:
    """One worker as its columns have it."""

    requests: int
    running: int | None
    waiting: int
    cached: int
    uncached: int
    elsewhere: int | None
    speed: float | None
    kv_share: float | None

    @property
    def in_flight(self) -> int:
        return max(self.requests, 0 if self.running is None else self.running + self.waiting)


WORKERS = st.builds(
    Seen,
    requests=st.integers(0, 3) | st.integers(0, 300),
    running=st.none() | st.integers(0, 300),
    waiting=st.integers(0, 50),
    cached=st.integers(0, 1_000),
    uncached=st.integers(0, 20_000),
    elsewhere=st.none() | st.integers(0, 20_000),
    speed=st.none() | st.sampled_from([1_000.0, 3_000.0]),
    kv_share=st.none() | st.floats(0.0, 1.0),
)


def cost(one: Seen, fleet: list[Seen]) -> float:
    """The rule of docs/policies.md, word for word."""
    known = [worker.speed for worker in fleet if worker.speed]
    speed = one.speed or (statistics.median(known) if known else 1_000.0)
    n_i, n = one.in_flight, statistics.mean(worker.in_flight for worker in fleet)
    weight = 1 + 0.3 * min(n, 4 * n_i) + 2 * max(0, n_i - n) / (n + 4)
    crowd = 20_000 * max(0, n_i - n - max(16, 6 * math.sqrt(n)))
    queued = one.uncached + (one.elsewhere or 0)
    pressure = 5 * max(0, (one.kv_share or 0) - 0.9) * 10
    own = max(1, PROMPT.prompt_tokens - one.cached)
    return (queued + own * weight + crowd) / speed + pressure


@given(fleet=st.lists(WORKERS, min_size=1, max_size=12))
def test_costs_are_those_of_the_rule(fleet: list[Seen]) -> None:
    candidates = columns(
        len(fleet),
        cached=[one.cached for one in fleet],
        requests=[one.requests for one in fleet],
        uncached=[one.uncached for one in fleet],
        reported=[one.running for one in fleet],
        waiting=[one.waiting for one in fleet],
        elsewhere=[one.elsewhere for one in fleet],
        speeds=[one.speed for one in fleet],
        kv_share=[one.kv_share for one in fleet],
    )
    shares = [one.kv_share for one in fleet if one.kv_share is not None]
    most = max(shares) if len(shares) == len(fleet) else None
    policy = KvCost(KvCostConfig(), random.Random(0))
    for seen in (candidates, msgspec.structs.replace(candidates, most_kv_share=most)):
        for found, one in zip(policy.choose(PROMPT, seen).explain(), fleet, strict=True):
            assert math.isclose(found, cost(one, fleet), rel_tol=1e-9)
