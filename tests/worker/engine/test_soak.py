"""Minutes of random traffic through the engine in its thread: nothing lost, nothing leaked.

RADIXGATE_SOAK_S sets how long, half a minute if it does not. Five minutes with overlap:

    RADIXGATE_SOAK_S=300 pytest tests/worker/engine/test_soak.py -k overlap
"""

import asyncio
import gc
import logging
import os
import random
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from asking import PLENTY, submit
from history_model import expected_greedy
from radixgate.clock import SystemClock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.engine.engine import Engine
from small_engine import SmallEngine
from until import until

SOAK_S = float(os.environ.get("RADIXGATE_SOAK_S", "30"))
MOST_OPEN = 150
PARTS = [(1,), (2, 3), (4, 5, 6, 7), (8,) * 12, (9,) * 30]
TOKENS = 24


@cache
def right(prompt: tuple[int, ...]) -> list[int]:
    return expected_greedy(prompt, TOKENS)


class Client:
    """A sink that knows what it has asked and holds on to nothing that has ended."""

    def __init__(self) -> None:
        self.open: dict[int, tuple[tuple[int, ...], int, dict[int, list[int]]]] = {}
        self.ended = 0
        self.wrong: list[str] = []
        self.kinds: dict[str, int] = {}

    def ask(self, handle: int, prompt: tuple[int, ...], choices: int) -> None:
        self.open[handle] = prompt, choices, {choice: [] for choice in range(choices)}

    def deliver(self, batch: pb.StepBatch) -> None:
        for refused in batch.refused:
            if self.open.pop(refused.handle, None) is None:
                self.wrong.append(f"{refused.handle} was refused and not open")
            self._count(f"refused {refused.status}")
        for item in batch.items:
            self._take(item)

    def _take(self, item: pb.Item) -> None:
        if item.handle not in self.open:
            self.wrong.append(f"{item.handle} goes on after its end")
            return
        prompt, _, running = self.open[item.handle]
        if item.choice not in running:
            self.wrong.append(f"choice {item.choice} of {item.handle} goes on after its end")
            return
        ids = running[item.choice]
        ids += item.token_ids
        if not item.HasField("finish"):
            return
        if ids != right(prompt)[: len(ids)]:
            self.wrong.append(f"{item.handle} answers {ids} to {prompt}")
        self._count(pb.Finish.Reason.Name(item.finish.reason))
        del running[item.choice]
        if not running:
            del self.open[item.handle]

    def _count(self, kind: str) -> None:
        self.ended += 1
        self.kinds[kind] = self.kinds.get(kind, 0) + 1


class Traffic:
    """Does something random to the engine, again and again."""

    def __init__(self, engine: Engine, small: SmallEngine, rng: random.Random) -> None:
        self._engine = engine
        self._small = small
        self._rng = rng
        self._handles = 0
        self.clients = [Client() for _ in range(4)]
        self.left: list[Client] = []

    def act(self) -> None:
        rng = self._rng
        place = rng.randrange(len(self.clients))
        client = self.clients[place]
        kind = rng.random()
        if kind < 0.55:
            if sum(len(one.open) for one in self.clients) < MOST_OPEN:
                self._ask(client)
        elif kind < 0.75 and client.open:
            handle = rng.choice(list(client.open))
            self._engine.add_credit(client, handle, rng.choice([1, 5, PLENTY]))
        elif kind < 0.93 and client.open:
            self._engine.abort(client, rng.choice(list(client.open)))
        elif kind < 0.95:
            self._engine.abort_rid(f"r{rng.randrange(30)}", prefix=rng.random() < 0.2)
        elif kind < 0.96:
            self._small.model.fail_next = True
        elif kind < 0.965:
            self._engine.detach(client)
            client.open.clear()
            self.left.append(client)
            self.left = self.left[-20:]
            self.clients[place] = Client()
            self.clients[place].kinds = client.kinds
            self.clients[place].wrong = client.wrong

    def _ask(self, client: Client) -> None:
        rng = self._rng
        self._handles += 1
        parts = rng.choices(PARTS, k=rng.randint(1, 4))
        prompt = tuple(token for part in parts for token in part)
        choices = rng.choice([1, 1, 1, 3])
        client.ask(self._handles, prompt, choices)
        made = submit(
            self._handles,
            prompt,
            rid=rng.choice(["", "", f"r{rng.randrange(30)}"]),
            max_tokens=rng.randint(0, TOKENS),
            n=choices,
            credit=rng.choice([PLENTY, PLENTY, 0, 3]),
            priority=rng.choice([0, 0, 1]),
            deadline_s=rng.choice([None, None, 0.01, 0.2]),
            salt=rng.choice([None, None, "tenant"]),
        )
        self._engine.submit(client, made)


@pytest.mark.slow
@pytest.mark.timeout(SOAK_S * 3 + 60)
@pytest.mark.parametrize("overlap", [True, False], ids=["overlap", "in-turns"])
async def test_random_traffic_loses_nothing_and_leaks_nothing(
    overlap: bool, caplog: pytest.LogCaptureFixture
) -> None:
    # What is captured keeps its traceback, and with that every pass that failed.
    caplog.set_level(logging.CRITICAL, "radixgate")
    clock = SystemClock()
    line = ThreadPoolExecutor(1) if overlap else None
    small = SmallEngine(
        pages=40,
        clock=clock,
        max_running_requests=12,
        max_queued_requests=60,
        schedule_policy="lpm",
        schedule_conservativeness=0.0,
        max_passed_over=3,
        line=line,
        disable_overlap_schedule=not overlap,
    )
    engine = Engine(small.core, clock, threads=1, line=line)
    traffic = Traffic(engine, small, random.Random(1))
    engine.start()
    begin = clock.now()
    memory: list[int] = []
    while clock.now() < begin + SOAK_S:
        for _ in range(200):
            traffic.act()
            await asyncio.sleep(0)
        if clock.now() > begin + SOAK_S * (len(memory) + 1) / 4:
            memory.append(_resident_mb())
    for client in traffic.clients:
        for handle in list(client.open):
            engine.add_credit(client, handle, PLENTY)
    await until(lambda: not any(client.open for client in traffic.clients), within_s=60)
    assert (await engine.flush())[0]
    engine.stop()
    small.core.check()
    stats = small.core.stats()
    assert stats.pages.free == stats.pages.total
    assert (stats.running, stats.waiting, stats.queued_uncached_tokens) == (0, 0, 0)
    assert stats.leaks_total == 0
    assert stats.retractions_total > 0
    assert stats.evicted_tokens_total > 0
    assert stats.requests_total == stats.finished_total + stats.aborted_total
    assert [client.wrong for client in traffic.clients] == [[]] * 4
    seen = set[str]().union(*(client.kinds for client in traffic.clients))
    assert {"LENGTH", "ABORT", "refused 409", "refused 503", "refused 500"} <= seen
    if len(memory) > 2:
        assert memory[-1] - memory[0] < 30, f"resident MB by quarters: {memory}"


def _resident_mb() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
