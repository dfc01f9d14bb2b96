"""A share of the sessions under another policy: on workers of their own, or on everybody's.

Whose turn it is follows from a salted hash, so that a session stays where it is. Neither gives an
estimate of an effect: arms share queues and caches, or have fleets of different sizes.
"""

import random
from collections.abc import Callable, Collection, Sequence

from radixgate.analysis.experiments.schedule import share_of
from radixgate.errors import NoWorkerAvailable
from radixgate.fleet.fleet import Ask
from radixgate.gateway.experiments.plan import Switches
from radixgate.gateway.experiments.units import UnitOf
from radixgate.gateway.experiments.watched_request import Label
from radixgate.policies.base import Candidates, Choice, Policy, RouteRequest
from radixgate.policies.kv_share import fullest


class Bucketing:
    """Who is B's. Sticky for as long as the salt is kept."""

    def __init__(self, salt: bytes, share: float, unit_of: UnitOf) -> None:
        self._salt = salt
        self._share = share
        self._unit_of = unit_of

    def arm_of(self, request: Ask | RouteRequest) -> int:
        """What names no unit is A's."""
        unit = self._unit_of(request)
        return int(unit is not None and share_of(self._salt, unit) < self._share)


class SplitPolicy:
    """A `Policy` that asks the arm's own.

    With a pool each arm sees its own workers only, so that each pool has its own books: what is in
    flight and cached at a worker is of that worker's requests alone. An arm none of whose workers
    is ready is placed by the other: a request comes before the experiment.
    """

    def __init__(self, arms: Sequence[Policy], buckets: Bucketing, pool: Collection[str]) -> None:
        """`pool`: the workers of B; empty: the arms share the fleet."""
        self._arms = tuple(arms)
        self._buckets = buckets
        self._pool = frozenset(pool)

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """As the arm's policy. Raises NoWorkerAvailable if there are no candidates."""
        arm = self._buckets.arm_of(request)
        if not self._pool:
            return self._arms[arm].choose(request, candidates)
        if not len(candidates):
            raise NoWorkerAvailable("no worker can be chosen")
        own = [at for at, name in enumerate(candidates.ids) if (name in self._pool) == bool(arm)]
        if not own:
            return self._arms[1 - arm].choose(request, candidates)
        return _choose_among(self._arms[arm], request, candidates, own)


class Split:
    """A `Plan` without blocks: it goes on until it is stopped."""

    over = False
    block = -1
    switches: Switches | None = None

    def __init__(
        self, buckets: Bucketing, pool: Sequence[str], install: Callable[[], None]
    ) -> None:
        """`install` makes the split policy the live one."""
        self._buckets = buckets
        self._pool = pool
        self._install = install

    def open(self) -> None:
        self._install()

    def step(self) -> None: ...

    def close(self) -> None: ...

    def label(self, ask: Ask) -> Label:
        return Label(self._buckets.arm_of(ask), -1, washout=False)

    def state(self) -> dict[str, object]:
        return {"workers_b": list(self._pool), "not_an_effect_estimate": True}


def pool_of(workers: Collection[str], share: float, rng: random.Random) -> tuple[str, ...]:
    """So many of the workers, by lot; one at least, and never all of them."""
    most = max(1, min(len(workers) - 1, round(share * len(workers))))
    return tuple(sorted(rng.sample(sorted(workers), most)))


def _choose_among(
    policy: Policy, request: RouteRequest, candidates: Candidates, own: Sequence[int]
) -> Choice:
    """Of the columns `own`; the index and the scores are again those of all candidates."""

    def cached() -> Sequence[int]:
        tokens = candidates.read_cached_tokens()
        return [tokens[at] for at in own]

    def steps_s() -> Sequence[float | None]:
        steps = candidates.read_decode_step_s()
        return [steps[at] for at in own] if steps else ()

    added_up, there = candidates.reported_requests, candidates.requests_there
    kv_share = [candidates.kv_share_used[at] for at in own]
    compared = candidates.most_kv_share is not None
    mine = Candidates(
        ids=[candidates.ids[at] for at in own],
        requests_in_flight=[candidates.requests_in_flight[at] for at in own],
        uncached_tokens_in_flight=[candidates.uncached_tokens_in_flight[at] for at in own],
        running=[candidates.running[at] for at in own],
        waiting=[candidates.waiting[at] for at in own],
        queued_uncached_tokens=[candidates.queued_uncached_tokens[at] for at in own],
        queued_elsewhere=[candidates.queued_elsewhere[at] for at in own],
        kv_share_used=kv_share,
        prefill_tokens_per_s=[candidates.prefill_tokens_per_s[at] for at in own],
        read_cached_tokens=cached,
        read_recent_share=lambda at: candidates.read_recent_share(own[at]),
        read_decode_step_s=steps_s,
        reported_requests=[added_up[at] for at in own] if added_up else (),
        requests_there=[there[at] for at in own] if there else (),
        most_kv_share=fullest(kv_share) if compared else None,
    )
    choice = policy.choose(request, mine)

    def scores() -> list[float]:
        """A worker of the other pool stands behind all."""
        found = choice.explain()
        behind = max(found, default=0.0) + 1.0
        every = [behind] * len(candidates)
        for at, score in zip(own, found, strict=True):
            every[at] = score
        return every

    return Choice(own[choice.index], choice.branch, scores)
