"""The mirror against a model that keeps every worker's blocks in plain sets and lists."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from clocks import FakeClock
from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.radix_mirror.mirror import MirrorConfig, Placement, RadixMirror

# A busy machine makes drawing slow; that says nothing about the code.
SLOW = [HealthCheck.too_slow]

TTL_S = 50.0
CAPACITY = 5
# A small tree: prompts are its paths, so that they share heads and branch.
PROMPTS: list[tuple[int, ...]] = [
    path[:length]
    for path in ((1, 2, 3, 4), (1, 2, 5, 6), (1, 7, 8), (9, 10))
    for length in range(len(path) + 1)
]
prompts = st.sampled_from(PROMPTS)
reporting = st.sampled_from(["a", "b"])
silent = st.sampled_from(["x", "y"])
anyone = st.one_of(reporting, silent)
tiers = st.sampled_from(Tier)


@dataclass(eq=False)
class Sent:
    """One placement, as the model keeps it."""

    worker: str
    ids: Sequence[int]
    deadline: float
    at: float
    live: set[int] = field(default_factory=set)  # blocks it still stands for
    known: int = 0
    answered: bool = False
    before: list[tuple[float, bool]] = field(default_factory=list)  # of each known block


@dataclass
class Truth:
    """What one worker holds, the slow way."""

    reports: bool
    epoch: int = 0
    stored: set[tuple[Tier, int]] = field(default_factory=set)
    claims: list[Sent] = field(default_factory=list)  # without events: visits, oldest first
    pending: dict[int, Sent] = field(default_factory=dict)
    used: list[tuple[int, Sent]] = field(default_factory=list)  # least recently used first

    def blocks(self) -> set[int]:
        waiting = [*self.claims, *self.pending.values()]
        claimed = {block for sent in waiting for block in sent.live}
        return {block for _, block in self.stored} | claimed | {block for block, _ in self.used}

    def depth(self, ids: Sequence[int]) -> int:
        blocks = self.blocks()
        return next((n for n, block in enumerate(ids) if block not in blocks), len(ids))

    def missing(self, ids: Sequence[int]) -> set[int]:
        return {block for block in ids if (Tier.DEVICE, block) not in self.stored}


class MirrorMachine(RuleBasedStateMachine):
    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.truth: dict[str, Truth] = {}
        self.epochs = 0

    @initialize(piece=st.integers(1, 2))
    def all_join(self, piece: int) -> None:
        # Prompts of four blocks: walks are remembered in pieces of a few.
        self.mirror = RadixMirror(self.clock, MirrorConfig(mirror_ttl_s=TTL_S), piece)
        for worker in "abxy":
            self.join(worker)
        for worker in "ab":
            self.new_epoch(worker)

    @rule(worker=anyone)
    def join(self, worker: str) -> None:
        reports = worker in "ab"
        self.mirror.add_worker(worker, reports_kv=reports, capacity_blocks=CAPACITY)
        self.truth[worker] = Truth(reports)

    @rule(worker=anyone)
    def leave(self, worker: str) -> None:
        self.mirror.remove_worker(worker)
        self.truth.pop(worker, None)

    @rule(worker=reporting)
    def new_epoch(self, worker: str) -> None:
        self.epochs += 1
        self.mirror.reset(worker, self.epochs)
        if worker in self.truth:
            truth = self.truth[worker]
            truth.epoch = self.epochs
            truth.stored.clear()
            truth.pending.clear()

    @rule(worker=reporting, ids=prompts, tier=tiers, late=st.booleans())
    def store(self, worker: str, ids: Sequence[int], tier: Tier, late: bool) -> None:
        if truth := self._report(worker, Stored(0, ids, tier), late):
            truth.stored |= {(tier, block) for block in ids}
            for sent in (*truth.claims, *truth.pending.values()):
                sent.live -= set(ids)

    @rule(worker=reporting, ids=prompts, tier=tiers, late=st.booleans())
    def remove(self, worker: str, ids: Sequence[int], tier: Tier, late: bool) -> None:
        if truth := self._report(worker, Removed(ids[::-1], tier), late):
            truth.stored -= {(tier, block) for block in ids}

    @rule(worker=reporting, ids=prompts, key=st.integers(0, 2), late=st.booleans())
    def queue(self, worker: str, ids: Sequence[int], key: int, late: bool) -> None:
        if truth := self._report(worker, Pending(key, 0, ids), late):
            truth.pending[key] = Sent(worker, ids, 0, 0, truth.missing(ids))

    @rule(worker=reporting, key=st.integers(0, 2), late=st.booleans())
    def unqueue(self, worker: str, key: int, late: bool) -> None:
        if truth := self._report(worker, Settled(key), late):
            truth.pending.pop(key, None)

    def _report(self, worker: str, event: KvEvent, late: bool) -> Truth | None:
        truth = self.truth.get(worker)
        epoch = truth.epoch if truth and truth.epoch else 999
        self.mirror.apply(worker, epoch - late, [event])
        return truth if truth and truth.epoch and not late else None

    @rule(
        target=sent,
        worker=anyone,
        ids=prompts,
        keep=st.integers(0, 9),
        look=st.booleans(),
        later=st.integers(0, 3),
    )
    def send(self, worker: str, ids: Sequence[int], keep: int, look: bool, later: int) -> object:
        held = self.mirror.depths(ids).get(worker, 0) if look else 0
        self.wait(later)  # what was held may be over when it is sent
        placement = self.mirror.expect(worker, ids, keep, held)
        truth = self.truth.get(worker)
        if truth is None:
            assert placement is None
            return multiple()
        assert placement is not None
        sent = Sent(worker, ids, self.clock.now() + keep, self.clock.now())
        if truth.reports:
            sent.live = truth.missing(ids)
            truth.claims.append(sent)
        else:
            self._visit(truth, sent)
        return placement, sent, truth

    def _visit(self, truth: Truth, sent: Sent) -> None:
        last = dict(truth.used)
        known = [last[block] for block in sent.ids if block in last]
        sent.known = len(known)
        sent.before = [(visit.at, visit.answered) for visit in known]
        truth.used = [entry for entry in truth.used if entry[0] not in sent.ids]
        truth.used += [(block, sent) for block in reversed(sent.ids)]
        del truth.used[: max(0, len(truth.used) - CAPACITY)]

    @rule(sent=sent)
    def withdraw(self, sent: tuple[Placement, Sent, Truth]) -> None:
        placement, mine, truth = sent
        self.mirror.withdraw(placement)
        mine.live.clear()
        new = mine.ids[mine.known :]
        truth.used = [(b, visit) for b, visit in truth.used if visit is not mine or b not in new]
        mine.ids = ()

    @rule(sent=sent, cached=st.none() | st.integers(0, 4))
    def settle(self, sent: tuple[Placement, Sent, Truth], cached: int | None) -> None:
        placement, mine, truth = sent
        self.mirror.settle(placement, cached)
        mine.answered = True
        if truth.reports:
            return
        if cached is not None and 2 * cached < mine.known:
            at, answered = mine.before[cached]
            if answered:
                truth.used = [entry for entry in truth.used if entry[1].at >= at]
        mine.ids = ()

    @rule()
    def forget(self) -> None:
        self.mirror.forget()
        for truth in self.truth.values():
            for sent in truth.claims:
                sent.live.clear()
            truth.used.clear()

    @rule(seconds=st.integers(1, 30))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)
        now = self.clock.now()
        for truth in self.truth.values():
            for sent in truth.claims:
                if sent.deadline <= now:
                    sent.live.clear()
            truth.used = [entry for entry in truth.used if entry[1].at > now - TTL_S]

    @invariant()
    def agree(self) -> None:
        now = self.clock.now()
        for truth in self.truth.values():
            for sent in truth.claims:
                if sent.deadline <= now:
                    sent.live.clear()
        for ids in PROMPTS:
            depths = {worker: truth.depth(ids) for worker, truth in self.truth.items()}
            assert self.mirror.depths(ids) == {w: depth for w, depth in depths.items() if depth}
        self.mirror.check()
        if not self.truth:
            assert len(self.mirror) == 0


MirrorMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=SLOW
)
TestMirrorMachine = pytest.mark.slow(MirrorMachine.TestCase)
