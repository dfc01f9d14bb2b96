"""The fleet's counts against the live leases: never negative, zero at the end."""

import random
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from books import Books
from radixgate.errors import NoWorkerAvailable
from radixgate.fleet.fleet import Lease, Outcome, WorkerState, WorkerView
from radixgate.policies.round_robin import RoundRobin

# A busy machine makes drawing slow; that says nothing about the code.
SLOW = [HealthCheck.too_slow]

names = st.sampled_from(["a", "b", "c"])
texts = st.text("ab", min_size=1, max_size=6)


@dataclass(eq=False)
class Live:
    """What a lease should stand for. `life` tells one life of a worker's name from the next."""

    lease: Lease
    life: int
    tokens: int
    uncached: int


class LeaseMachine(RuleBasedStateMachine):
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.books = Books(reports_kv=False)
        self.lives: dict[str, int] = {}
        self.live: list[Live] = []
        self.life = 0

    @initialize()
    def all_join(self) -> None:
        for name in "abc":
            self.join(name)

    @rule(name=names)
    def join(self, name: str) -> None:
        self.books.join(name)
        self.life += 1
        self.lives[name] = self.life

    @rule(name=names)
    def leave(self, name: str) -> None:
        self.books.fleet.remove(name)
        self.lives.pop(name, None)

    @rule(name=names, state=st.sampled_from(WorkerState))
    def change(self, name: str, state: WorkerState) -> None:
        if name in self.lives:
            self.books.fleet.set_state(name, state)

    @rule(target=leases, text=texts, exclude=st.frozensets(names))
    def lease(self, text: str, exclude: frozenset[str]) -> Live | None:
        ready = {
            view.identity.id
            for view in self.books.fleet.workers()
            if view.state is WorkerState.READY
        }
        try:
            lease = self.books.lease(text, exclude)
        except NoWorkerAvailable:
            assert not ready - exclude
            return None
        assert lease.worker.id in ready - exclude
        life = self.lives[lease.worker.id]
        live = Live(lease, life, len(text), len(text) - lease.predicted_cached_tokens)
        assert live.uncached >= 1
        self.live.append(live)
        return live

    @rule(live=leases)
    def first_output(self, live: Live | None) -> None:
        if live:
            live.lease.first_output()
            live.uncached = 0

    @rule(live=leases, outcome=st.sampled_from(Outcome), cached=st.none() | st.integers(0, 6))
    def close(self, live: Live | None, outcome: Outcome, cached: int | None) -> None:
        if live:
            live.lease.close(outcome, cached)
            self.live = [other for other in self.live if other is not live]

    @rule()
    def begin_anew_under_another_policy(self) -> None:
        self.books.fleet.use_policy(RoundRobin(random.Random(1)))
        self.books.fleet.forget()
        assert all(self.books.blocks_of(name).approximate == 0 for name in self.lives)

    @rule(seconds=st.integers(0, 5))
    def wait(self, seconds: int) -> None:
        self.books.clock.advance(seconds)

    @invariant()
    def counts_are_those_of_the_live_leases(self) -> None:
        self.books.fleet.check()
        for view in self.books.fleet.workers():
            assert _counts(view) == self._expected(view.identity.id)

    def _expected(self, name: str) -> tuple[int, int, int]:
        mine = [live for live in self.live if live.life == self.lives[name]]
        tokens, uncached = sum(live.tokens for live in mine), sum(live.uncached for live in mine)
        return len(mine), tokens, uncached

    def teardown(self) -> None:
        for live in self.live:
            live.lease.close(Outcome.ABORTED)
        assert all(_counts(view) == (0, 0, 0) for view in self.books.fleet.workers())


def _counts(view: WorkerView) -> tuple[int, int, int]:
    return view.in_flight, view.tokens_in_flight, view.uncached_tokens_in_flight


LeaseMachine.TestCase.settings = settings(
    max_examples=50, stateful_step_count=40, deadline=None, suppress_health_check=SLOW
)
TestLeaseMachine = pytest.mark.slow(LeaseMachine.TestCase)
