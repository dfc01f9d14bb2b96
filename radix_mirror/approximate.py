"""What a worker that reports nothing is believed to hold: the prompts sent to it, newest first."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from radixgate.radix_mirror.block_masks import BlockMasks


@dataclass(frozen=True, slots=True)
class Earlier:
    """Who used a prompt's blocks, from `start` on, before this prompt came."""

    start: int
    at: float
    answered: bool  # by then the worker had computed them


@dataclass(slots=True, eq=False)
class Visit:
    """One prompt's pass through one worker."""

    bit: int
    at: float
    ids: Sequence[int]  # emptied once it is settled
    known: int = 0  # leading blocks that were believed to be there already
    answered: bool = False
    earlier: tuple[Earlier, ...] = ()  # deepest first


@dataclass(slots=True, eq=False)
class _Worker:
    capacity_blocks: int | None
    # Block -> its last visit, least recently used first. A visit touches a prompt's last block
    # first, so that a block always stands before its parent: the first entry is a leaf.
    used: OrderedDict[int, Visit]


class ApproximateBlocks:
    """Least recently used lists of the workers without events, bounded three ways.

    By each worker's capacity, by `ttl_s` since the last use, and by `max_blocks` over all workers
    (the least recently used go first). Believing too much costs little, believing too little costs
    hits, so capacities should be given generously.
    """

    def __init__(self, masks: BlockMasks, ttl_s: float, max_blocks: int) -> None:
        self._masks = masks
        self._ttl_s = ttl_s
        self._max_blocks = max_blocks
        self._workers: dict[int, _Worker] = {}
        self._total = 0
        self._next_expiry = float("inf")  # never later than the true one

    def __len__(self) -> int:
        return self._total

    def add_worker(self, bit: int, capacity_blocks: int | None) -> None:
        """None: nothing is known of its capacity, the other two bounds hold."""
        self._workers[bit] = _Worker(capacity_blocks, OrderedDict())

    def count(self, bit: int) -> int:
        """Blocks believed of one worker."""
        worker = self._workers.get(bit)
        return len(worker.used) if worker else 0

    def touch(self, bit: int, ids: Sequence[int], now: float) -> Visit:
        """The worker got this prompt: it will hold its blocks. O(blocks), 0.2 us each."""
        worker = self._workers[bit]
        used = worker.used
        visit = Visit(bit, now, ids)
        fresh: list[int] = []
        earlier: list[Earlier] = []
        last: Visit | None = None
        for index in range(len(ids) - 1, -1, -1):
            block = ids[index]
            seen = used.get(block)
            used[block] = visit
            if seen is None:
                fresh.append(block)
                continue
            used.move_to_end(block)
            if seen is not last and last is not None:
                earlier.append(Earlier(index + 1, last.at, last.answered))
            last = seen
        if last is not None:
            earlier.append(Earlier(0, last.at, last.answered))
        visit.known = len(ids) - len(fresh)
        visit.earlier = tuple(earlier)
        self._masks.add(bit, fresh)
        self._total += len(fresh)
        self._next_expiry = min(self._next_expiry, now + self._ttl_s)
        self._shrink(bit, worker)
        return visit

    def withdraw(self, visit: Visit) -> None:
        """The prompt was never computed: what only it stood for leaves. Twice is harmless."""
        worker = self._workers.get(visit.bit)
        if worker:
            new = visit.ids[visit.known :]
            self._drop(visit.bit, worker, [b for b in new if worker.used.get(b) is visit])
        visit.ids = ()

    def settle(self, visit: Visit, cached_blocks: int | None) -> None:
        """The prompt was computed; its reply told how many blocks were cached (None: it did not).

        If that is less than half of what was believed, and the worker had answered for these blocks
        before, then it has evicted them, and with them all it had used less recently.
        """
        worker = self._workers.get(visit.bit)
        if worker and cached_blocks is not None and 2 * cached_blocks < visit.known:
            lost = next(earlier for earlier in visit.earlier if earlier.start <= cached_blocks)
            if lost.answered:
                self._evict_older(visit.bit, worker, lost.at)
        visit.ids = ()

    def expire(self, now: float) -> None:
        """Drop what was not used for `ttl_s`; O(1) unless something may be due."""
        if now < self._next_expiry:
            return
        for bit, worker in self._workers.items():
            self._evict_older(bit, worker, now - self._ttl_s, inclusive=True)
        oldest = (_oldest(worker).at for worker in self._workers.values() if worker.used)
        self._next_expiry = min(oldest, default=float("inf")) + self._ttl_s

    def purge(self, bit: int) -> None:
        """Forget the worker."""
        worker = self._workers.pop(bit, None)
        if worker:
            self._drop(bit, worker, list(worker.used))

    def check(self) -> None:
        """Assert that bounds hold, times rise and masks agree. O(blocks)."""
        assert self._total == sum(len(worker.used) for worker in self._workers.values())
        assert self._total <= self._max_blocks
        for bit, worker in self._workers.items():
            times = [visit.at for visit in worker.used.values()]
            assert times == sorted(times)
            assert worker.capacity_blocks is None or len(times) <= worker.capacity_blocks
            assert not times or self._next_expiry <= times[0] + self._ttl_s
            for block in worker.used:
                assert self._masks.get(block, 0) & bit, f"block {block} lacks its bit"

    def _shrink(self, bit: int, worker: _Worker) -> None:
        if worker.capacity_blocks is not None:
            self._evict(bit, worker, len(worker.used) - worker.capacity_blocks)
        while self._total > self._max_blocks:
            bit, worker = min(
                ((bit, worker) for bit, worker in self._workers.items() if worker.used),
                key=lambda item: _oldest(item[1]).at,
            )
            # All that the oldest visit left, so that the search pays for itself.
            visit = _oldest(worker)
            excess = self._total - self._max_blocks
            while excess and worker.used and _oldest(worker) is visit:
                self._evict(bit, worker, 1)
                excess -= 1

    def _evict_older(
        self, bit: int, worker: _Worker, at: float, *, inclusive: bool = False
    ) -> None:
        old = []
        for block, visit in worker.used.items():
            if visit.at > at or (visit.at == at and not inclusive):
                break
            old.append(block)
        self._drop(bit, worker, old)

    def _evict(self, bit: int, worker: _Worker, blocks: int) -> None:
        gone = [worker.used.popitem(last=False)[0] for _ in range(blocks)]
        self._masks.drop(bit, gone)
        self._total -= len(gone)

    def _drop(self, bit: int, worker: _Worker, ids: Sequence[int]) -> None:
        for block in ids:
            del worker.used[block]
        self._masks.drop(bit, ids)
        self._total -= len(ids)


def _oldest(worker: _Worker) -> Visit:
    return next(iter(worker.used.values()))
