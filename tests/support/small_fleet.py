"""A fleet in virtual time: real books, mirror and log, workers reduced to a queue and a pool."""

import heapq
import random
from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from books import identity
from clocks import FakeClock
from radixgate.fleet.fleet import Ask, Fleet, Lease, MirrorKey, Outcome, WorkerState
from radixgate.policies.base import Policy
from radixgate.policies.registry import make_policy
from radixgate.proto.blocks import chain, root_id
from radixgate.proto.kv_events import KvEvent, Removed, Stored
from radixgate.proto.kv_log import KvLog
from radixgate.radix_mirror.feed import KvFeed

PAGE = 16
KEY = MirrorKey("toy", "tokens", PAGE)
ROOT = root_id("toy")
Client = Iterator[Sequence[int]]  # the prompts it sends, each when the one before is answered


class PoolWorker:
    """Computes prompts one after the other, and keeps their pages up to a capacity."""

    def __init__(self, fleet: Fleet, name: str, capacity_pages: int, reports_kv: bool) -> None:
        self.busy_until = 0.0
        self.log = KvLog(1)
        self._capacity = capacity_pages
        self._pages: OrderedDict[int, int] = OrderedDict()  # block id -> parent, leaves first
        self._feed = KvFeed(fleet.mirror_of(name), name) if reports_kv else None
        self._position = (0, 0)
        self._tell()

    def cached_tokens(self, ids: Sequence[int], tokens: int) -> int:
        held = next((n for n, block in enumerate(ids) if block not in self._pages), len(ids))
        return min(held * PAGE, (tokens - 1) // PAGE * PAGE)

    def store(self, ids: Sequence[int]) -> None:
        """Keep a prompt that was computed; what was used least recently makes room."""
        parents = [ROOT, *ids[:-1]]
        events: list[KvEvent] = [
            Stored(parent, [block])
            for parent, block in zip(parents, ids, strict=True)
            if block not in self._pages
        ]
        for parent, block in reversed(list(zip(parents, ids, strict=True))):
            self._pages[block] = parent
            self._pages.move_to_end(block)
        over = max(0, len(self._pages) - self._capacity)
        gone = [self._pages.popitem(last=False)[0] for _ in range(over)]
        self.log.record([*events, Removed(gone)] if gone else events)
        self._tell()

    def _tell(self) -> None:
        if self._feed is None:
            return
        for update in self.log.since(*self._position):
            assert self._feed.take(update) is None
            self._position = (update.epoch, update.seq)


@dataclass(slots=True)
class Result:
    chosen: Counter[str]
    by_client: dict[int, list[str]]
    prompt_tokens: int = 0
    cached_tokens: int = 0

    @property
    def hit_rate(self) -> float:
        return self.cached_tokens / self.prompt_tokens

    @property
    def top_share(self) -> float:
        return max(self.chosen.values()) / self.chosen.total()

    def stayed(self, client: int) -> bool:
        return len(set(self.by_client[client])) == 1


class SmallFleet:
    """Workers of 2,000 prompt tokens a second whose answers take a second more."""

    PREFILL_TOKENS_PER_S = 2_000.0
    DECODE_S = 1.0

    def __init__(
        self,
        workers: int,
        policy: str | Policy = "cache_aware",
        *,
        capacity_pages: int = 100_000,
        seed: int = 1,
        reports_kv: bool = True,
    ) -> None:
        self.clock = FakeClock()
        self.rng = random.Random(seed)
        if isinstance(policy, str):
            policy = make_policy(policy, self.clock, self.rng)
        self.fleet = Fleet(policy, self.clock, self.rng)
        self.workers: dict[str, PoolWorker] = {}
        self._capacity_pages = capacity_pages
        self._reports_kv = reports_kv
        for number in range(workers):
            self.add_worker(f"w{number}")
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = 0

    def add_worker(self, name: str) -> None:
        self.fleet.admit(
            identity(
                name,
                key=KEY,
                capacity=self._capacity_pages * PAGE,
                reports_kv=self._reports_kv,
            )
        )
        self.fleet.set_state(name, WorkerState.READY)
        self.workers[name] = PoolWorker(self.fleet, name, self._capacity_pages, self._reports_kv)

    def run(self, clients: Sequence[Client]) -> Result:
        """All clients at once, each with one request at a time; returns when all are answered."""
        result = Result(Counter(), {number: [] for number in range(len(clients))})
        for number, client in enumerate(clients):
            self._at(self.clock.now(), partial(self._send, number, client, result))
        while self._events:
            when, _, act = heapq.heappop(self._events)
            self.clock.advance(max(0.0, when - self.clock.now()))
            act()
        self.fleet.check()
        assert all(view.in_flight == 0 for view in self.fleet.workers())
        return result

    def _send(self, number: int, client: Client, result: Result) -> None:
        prompt = next(client, None)
        if prompt is None:
            return
        ids = chain(ROOT, array("I", prompt), PAGE)
        ask = Ask("toy", len(prompt), {KEY: ids}, fingerprint=hash(tuple(prompt)) or 1)
        lease = self.fleet.lease(ask)
        name = lease.worker.id
        worker = self.workers[name]
        result.chosen[name] += 1
        result.by_client[number].append(name)
        computing_s = (len(prompt) - lease.predicted_cached_tokens) / self.PREFILL_TOKENS_PER_S
        worker.busy_until = max(self.clock.now(), worker.busy_until) + computing_s
        done = worker.busy_until
        self._at(done, partial(self._computed, lease, ids, len(prompt), result))
        self._at(done + self.DECODE_S, partial(self._answered, lease, number, client, result))

    def _computed(self, lease: Lease, ids: Sequence[int], tokens: int, result: Result) -> None:
        worker = self.workers[lease.worker.id]
        result.prompt_tokens += tokens
        result.cached_tokens += worker.cached_tokens(ids, tokens)
        worker.store(ids)
        lease.first_output()

    def _answered(self, lease: Lease, number: int, client: Client, result: Result) -> None:
        lease.close(Outcome.OK)
        self._send(number, client, result)

    def _at(self, when: float, act: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (when, self._serial, act))
