"""What one routing decision costs: hash, match, candidates, policy and books.

    python -m pytest benchmarks/decision.py [-k kv_cost]

Every worker reports its load and holds a random share of each prompt, up to nine tenths of it. A
prompt is new behind what is held, and hashed anew but for the fifth turn of a conversation, of
which the gateway has seen four. The time is that of the thread, in microseconds: what others do on
the machine counts as little as it can. The lease is closed outside of it. A loop that only counts,
of about the same length, shows what the machine adds to any p99. Where one kind of decision is to
cost no more than another they take turns, as the machine's speed changes from minute to minute, and
the ratio is printed.
"""

import random
import statistics
import time
from array import array
from collections.abc import Sequence

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from radixgate.clock import SystemClock
from radixgate.fleet.fleet import (
    Ask,
    Fleet,
    Lease,
    MirrorKey,
    Outcome,
    WorkerIdentity,
    WorkerState,
)
from radixgate.fleet.load_report import LoadReport
from radixgate.policies.registry import POLICIES, make_policy
from radixgate.proto.blocks import chain, root_id
from radixgate.proto.kv_events import Stored
from radixgate.proto.token_chains import TokenChains

ROOT = root_id("bench")
ROUNDS = 1_000
PROMPTS = 50  # made beforehand, so that making them does not cool the processor's caches


class Desk:
    """A fleet, and prompts that come to it."""

    def __init__(self, policy: str, workers: int, tokens: int, page: int) -> None:
        clock, self._rng = SystemClock(), random.Random(0)
        self.key = MirrorKey("bench", "tokens", page)
        self.fleet = Fleet(make_policy(policy, clock, self._rng), clock, self._rng)
        self._held = self._words(tokens * 9 // 10)
        self._new = tokens - len(self._held)
        ids = chain(ROOT, self._held, page)
        for name in (f"w{n}" for n in range(workers)):
            self.fleet.admit(identity(name, self.key))
            self.fleet.set_state(name, WorkerState.READY)
            mirror = self.fleet.mirror_of(name)
            mirror.reset(name, 1)
            mirror.apply(name, 1, [Stored(0, ids[: self._rng.randint(1, len(ids))])])
        self._open: list[Lease] = []
        self._prompts = [self._held + self._words(self._new) for _ in range(PROMPTS)]
        self._rounds = 0

    def next_prompt(self) -> "array[int]":
        """Begins with what is held; the decision before is closed, everybody has just reported."""
        while self._open:
            self._open.pop().close(Outcome.FAILED)
        if self._rounds % PROMPTS == 0:
            for view in self.fleet.workers():
                told = LoadReport(3, 0, 0, 0, 0, 0, 100_000, 0, 0)
                self.fleet.report_load(view.identity.id, told)
        self._rounds += 1
        return self._prompts[self._rounds % PROMPTS]

    def decide(self, prompt: "array[int]", ids: Sequence[int]) -> None:
        self._open.append(self.fleet.lease(Ask("bench", len(prompt), {self.key: ids})))

    def _words(self, count: int) -> "array[int]":
        return array("I", (self._rng.randrange(50_000) for _ in range(count)))


def identity(name: str, key: MirrorKey) -> WorkerIdentity:
    return WorkerIdentity(
        id=name,
        url=f"grpc://{name}",
        kind="grpc",
        model="bench",
        mirror=key,
        capacity_tokens=None,
        weights_id="bench",
        instance_id="",
        reports_kv=True,
    )


def report(benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], what: str) -> None:
    p50, p99 = p50_p99(benchmark.stats.stats.data)
    benchmark.extra_info.update(p50_us=p50, p99_us=p99)
    with capsys.disabled():
        print(f"\n{what:<58} p50 {p50:>6.0f} us   p99 {p99:>6.0f} us")


def p50_p99(laps_s: Sequence[float]) -> tuple[float, float]:
    """In microseconds."""
    return 1e6 * statistics.median(laps_s), 1e6 * statistics.quantiles(laps_s, n=100)[98]


@pytest.mark.benchmark(timer=time.thread_time)
@pytest.mark.parametrize(
    ("workers", "tokens"),
    [pytest.param(8, 2_048, id="8w-2k"), pytest.param(256, 32_768, id="256w-32k")],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_new_prompt(
    benchmark: BenchmarkFixture,
    capsys: pytest.CaptureFixture[str],
    policy: str,
    workers: int,
    tokens: int,
) -> None:
    desk = Desk(policy, workers, tokens, 64)

    def decide(prompt: "array[int]") -> None:
        desk.decide(prompt, chain(ROOT, prompt, 64))

    benchmark.pedantic(decide, setup=lambda: ((desk.next_prompt(),), {}), rounds=ROUNDS)
    report(benchmark, capsys, f"{policy}: {workers} workers, {tokens:,} tokens, page 64")


@pytest.mark.benchmark(timer=time.thread_time)
@pytest.mark.parametrize("policy", ["cache_aware", "kv_cost"])
def test_a_fifth_turn(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    desk, chains = Desk(policy, 256, 32_768, 16), TokenChains()

    def seen_four_turns() -> "tuple[tuple[array[int]], dict[str, object]]":
        prompt = desk.next_prompt()
        for turn in (1, 2, 3, 4):
            chains.chain(ROOT, prompt[: len(prompt) * turn // 5], 16)
        return (prompt,), {}

    def decide(prompt: "array[int]") -> None:
        desk.decide(prompt, chains.chain(ROOT, prompt, 16))

    benchmark.pedantic(decide, setup=seen_four_turns, rounds=ROUNDS // 4)
    report(benchmark, capsys, f"{policy}: 256 workers, 32,768 tokens, page 16, fifth turn")


@pytest.mark.parametrize("policy", ["cache_aware", "kv_cost"])
def test_a_fifth_turn_beside_a_new_prompt(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    """A fifth turn at page 16 and a new prompt at page 64, in turns, and either first as often."""
    desks = {page: Desk(policy, 256, 32_768, page) for page in (64, 16)}
    laps: dict[int, list[float]] = {page: [] for page in desks}
    chains, order = TokenChains(), [*desks]

    def decide_both() -> None:
        prompts = {page: desk.next_prompt() for page, desk in desks.items()}
        for turn in (1, 2, 3, 4):
            chains.chain(ROOT, prompts[16][: len(prompts[16]) * turn // 5], 16)
        for page in order:
            began = time.thread_time()
            desks[page].decide(prompts[page], chains.chain(ROOT, prompts[page], page))
            laps[page].append(time.thread_time() - began)
        order.reverse()

    benchmark.pedantic(decide_both, rounds=ROUNDS)
    new, fifth = map(p50_p99, laps.values())
    ratios = [there / here for here, there in zip(new, fifth, strict=True)]
    benchmark.extra_info.update(p50_ratio=ratios[0], p99_ratio=ratios[1])
    with capsys.disabled():
        print(f"\n{policy}: 256 workers, 32,768 tokens, in turns")
        for name, (p50, p99) in (("page 64, new", new), ("page 16, fifth turn", fifth)):
            print(f"{name:>58} p50 {p50:>6.0f} us   p99 {p99:>6.0f} us")
        print(f"{'ratio':>58} p50 {ratios[0]:>6.2f}      p99 {ratios[1]:>6.2f}")


@pytest.mark.benchmark(timer=time.thread_time)
def test_a_loop_that_only_counts(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    def count() -> None:
        for _ in range(25_000):
            pass

    benchmark.pedantic(count, rounds=ROUNDS)
    report(benchmark, capsys, f"a loop, {1e6 * benchmark.stats.stats.min:.0f} us at least")
