"""Random traffic through the engine core: right answers, one end each, and no page lost."""

from dataclasses import dataclass
from typing import Unpack

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from asking import PLENTY, Asked
from clocks import FakeClock
from history_model import expected_greedy
from small_engine import Ear, SmallEngine
from stored_blocks import StoredBlocks

# Prompts from few parts, so that they share prefixes of every length.
PARTS = st.lists(st.sampled_from([(1,), (2, 3), (4, 5, 6, 7), (8,) * 6, (9,) * 9]), min_size=1)
PROMPTS = PARTS.map(lambda parts: [token for part in parts for token in part][:40])
CONTEXT = 48


@dataclass(frozen=True)
class Wanted:
    prompt: list[int]
    tokens: int
    n: int
    given: list[int]  # prior output


class Traffic(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.ears: list[Ear] = []
        self.asked: dict[tuple[int, int], Wanted] = {}  # by ear and handle
        self.handles = 0
        self.reader = StoredBlocks()

    @initialize(
        page_size=st.sampled_from([1, 2, 4]),
        tokens=st.integers(6, 160),
        chunk=st.sampled_from([-1, 4, 7, 16]),
        policy=st.sampled_from(["fcfs", "lpm", "dfs-weight", "lof", "random"]),
        conservativeness=st.sampled_from([0.0, 1.0]),
        running=st.integers(1, 6),
        no_cache=st.booleans(),
        overlap=st.booleans(),
        eviction=st.sampled_from(["lru", "lfu", "slru", "fifo", "mru", "filo", "priority"]),
    )
    def start(
        self,
        page_size: int,
        tokens: int,
        chunk: int,
        policy: str,
        conservativeness: float,
        running: int,
        no_cache: bool,
        overlap: bool,
        eviction: str,
    ) -> None:
        self.longest = min(CONTEXT, tokens // page_size * page_size)
        self.engine = SmallEngine(
            pages=tokens // page_size,
            context=CONTEXT,
            clock=self.clock,
            page_size=page_size,
            chunked_prefill_size=chunk,
            max_prefill_tokens=16,
            schedule_policy=policy,
            schedule_conservativeness=conservativeness,
            max_running_requests=running,
            max_passed_over=3,
            disable_radix_cache=no_cache,
            disable_overlap_schedule=not overlap,
            radix_eviction_policy=eviction,
            debug_checks=True,
        )
        self.ears = [Ear(), Ear()]

    @rule(
        ear=st.integers(0, 1),
        prompt=PROMPTS,
        tokens=st.integers(0, 20),
        choices=st.sampled_from([1, 1, 1, 3]),
        resumed=st.integers(0, 4),
        credit=st.sampled_from([PLENTY, PLENTY, 0, 2]),
        salt=st.sampled_from([None, None, "tenant"]),
        deadline_s=st.sampled_from([None, None, 5.0]),
        priority=st.sampled_from([0, 0, 1]),
    )
    def submit(
        self,
        ear: int,
        prompt: list[int],
        tokens: int,
        choices: int,
        resumed: int,
        **asked: Unpack[Asked],
    ) -> None:
        self.handles += 1
        resumed = min(resumed, tokens) if choices == 1 else 0
        given = expected_greedy(prompt, resumed)
        asked |= Asked(prior=given, max_tokens=tokens, n=choices)
        self.engine.submit(self.ears[ear], self.handles, prompt, **asked)
        self.asked[ear, self.handles] = Wanted(prompt, tokens, choices, given)
        self._look()

    @rule(
        steps=st.integers(1, 6),
        seconds=st.sampled_from([0.0, 0.0, 3.0]),
        a_pass_fails=st.sampled_from([False] * 9 + [True]),
    )
    def step(self, steps: int, seconds: float, a_pass_fails: bool) -> None:
        self.clock.advance(seconds)
        self.engine.model.fail_next = a_pass_fails
        for _ in range(steps):
            self.engine.step()
            self._look()
        self.engine.model.fail_next = False

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), tokens=st.integers(0, 5))
    def add_credit(self, data: st.DataObject, tokens: int) -> None:
        ear, handle = data.draw(st.sampled_from(sorted(self.asked)))
        self.engine.core.add_credit(self.ears[ear], handle, tokens)

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        ear, handle = data.draw(st.sampled_from(sorted(self.asked)))
        self.engine.core.abort(self.ears[ear], handle, "because")
        self._look()

    @rule(ear=st.integers(0, 1))
    def leave(self, ear: int) -> None:
        self.engine.core.detach(self.ears[ear])
        self._look()
        self.ears[ear] = Ear()
        self.asked = {key: what for key, what in self.asked.items() if key[0] != ear}

    @rule()
    def flush(self) -> None:
        stats = self.engine.core.stats()
        done, _ = self.engine.core.flush()
        assert done == (stats.running == stats.waiting == 0)
        if done:
            self.reader = StoredBlocks()
            self.engine.deliver()
            assert self.engine.core.stats().pages.free == stats.pages.total
        self._look()

    def teardown(self) -> None:
        if not self.ears:
            return
        for ear, handle in self.asked:
            self.engine.core.add_credit(self.ears[ear], handle, PLENTY)
        self.engine.run()
        self._look()
        self.engine.check_idle()
        assert not self.reader.pending
        assert all(times == 1 for times in self.engine.ended.values())
        for ear, handle in self.asked:
            self._check_answer(ear, handle)
        done, message = self.engine.core.flush()
        assert done, message
        pages = self.engine.core.stats().pages
        assert pages.free == pages.total

    def _look(self) -> None:
        """After anything that happens: all agrees, and the events follow on one another."""
        self.engine.deliver()
        self.engine.core.check()
        self.reader.apply(self.engine.events)
        self.engine.events.clear()
        if not self.engine.config.disable_radix_cache:
            held = self.engine.core.stats().pages
            assert len(self.reader.ids) >= held.evictable

    def _check_answer(self, ear: int, handle: int) -> None:
        heard, asked = self.ears[ear], self.asked[ear, handle]
        prompt, given = asked.prompt, asked.given
        room = 0 if asked.tokens == 0 else 1
        if len(prompt) + room > self.longest:
            assert heard.refused[handle].status == 400
            assert not heard.of(handle)
            return
        if handle in heard.refused:
            assert heard.refused[handle].status == 500, "a pass failed before it had said anything"
            assert not heard.of(handle)
            return
        end = min(asked.tokens, self.longest - len(prompt))
        right = expected_greedy(prompt, max(end, len(given)))[len(given) :]
        for choice in range(asked.n):
            reason, ids = heard.finish(handle, choice), heard.ids(handle, choice)
            assert reason in ("LENGTH", "ABORT")
            assert ids == (right if reason == "LENGTH" else right[: len(ids)])
            counts = heard.counts(handle, choice)
            assert counts.completion == len(ids)
            assert counts.prompt == len(prompt)


TestTraffic = pytest.mark.slow(Traffic.TestCase)
Traffic.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
