"""What a worker that reports nothing is believed to hold: the prompts sent to it, newest first."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from radixgate.radix_mirror.block_masks import BlockMasks


class Earlier(msgspec.Struct, frozen=True, gc=False):
    """Who used a prompt's blocks, from `start` on, before this prompt came. A Struct: several are
    made for every request."""

    start: int
    at: float
    answered: bool  # by then the worker had computed them


class Visit(msgspec.Struct, eq=False):
    """One prompt's pass through one worker."""

    bit: int
    at: float
    ids: Sequence[int]  # emptied once it is settled
    known: int = 0  # leading blocks that were believed to be there already
    answered: bool = False
    earlier: tuple[Earlier, ...] = ()  # deepest first


class _Run(msgspec.Struct, eq=False):
    """Consecutive blocks that every visit so far has used together; never empty."""

    start: int  # depth of its first block
    ids: Sequence[int]
    parent: "_Run | None"  # None: it begins the prompt
    visit: Visit  # the last one

    @property
    def end(self) -> int:
        return self.start + len(self.ids)


@dataclass(slots=True, eq=False)
class _Worker:
    capacity_blocks: int | None
    run_of: dict[int, _Run]  # by block
    # Least recently used first. A visit touches a prompt's last run first, so that a run always
    # stands before its parent: the first is a leaf, and what is known of a prompt is its beginning.
    runs: OrderedDict[_Run, None]

    def known(self, ids: Sequence[int]) -> int:
        """How many leading blocks are held. O(log blocks), O(1) if all are."""
        run_of = self.run_of
        low, high = 0, len(ids)
        if high and ids[-1] in run_of:
            return high
        while low < high:
            middle = (low + high) // 2
            if ids[middle] in run_of:
                low = middle + 1
            else:
                high = middle
        return low

    def oldest(self) -> _Run:
        return next(iter(self.runs))


class ApproximateBlocks:
    """Least recently used lists of the workers without events, bounded three ways.

    By each worker's capacity, by `ttl_s` since the last use, and by the mirror's budget over all
    workers, which calls `shrink` (the least recently used go first). Believing too much costs
    little, believing too little costs hits, so capacities should be given generously.
    """

    def __init__(self, masks: BlockMasks, ttl_s: float) -> None:
        self._masks = masks
        self._ttl_s = ttl_s
        self._workers: dict[int, _Worker] = {}
        self.total = 0  # blocks, each as often as workers are believed to hold it
        self.next_expiry = float("inf")  # never later than the true one

    def add_worker(self, bit: int, capacity_blocks: int | None) -> None:
        """None: nothing is known of its capacity, the other two bounds hold."""
        self._workers[bit] = _Worker(capacity_blocks, {}, OrderedDict())

    def count(self, bit: int) -> int:
        """Blocks believed of one worker."""
        worker = self._workers.get(bit)
        return len(worker.run_of) if worker else 0

    def touch(self, bit: int, ids: Sequence[int], now: float) -> Visit:
        """The worker got this prompt: it will hold its blocks.

        O(log blocks) for what is known, O(1) a block for the rest, 0.2 us each.
        """
        worker = self._workers[bit]
        visit = Visit(bit, now, ids)
        visit.known = known = worker.known(ids)
        last = _run_up_to(worker, ids[known - 1], known) if known else None
        if known < len(ids):
            fresh = ids[known:]
            run = _Run(known, fresh, last, visit)
            worker.runs[run] = None
            worker.run_of.update(dict.fromkeys(fresh, run))
            self._masks.add(bit, fresh)
            self.total += len(fresh)
        visit.earlier = _take_over(worker, last, visit)
        self.next_expiry = min(self.next_expiry, now + self._ttl_s)
        if worker.capacity_blocks is not None:
            self._evict(bit, worker, len(worker.run_of) - worker.capacity_blocks)
        return visit

    def withdraw(self, visit: Visit) -> None:
        """The prompt was never computed: what only it stood for leaves. Twice is harmless."""
        worker = self._workers.get(visit.bit)
        depth = len(visit.ids)
        while worker and depth > visit.known:
            run = worker.run_of.get(visit.ids[depth - 1])
            if run is None:  # evicted since
                depth -= 1
                continue
            if run.visit is not visit:  # others came, and with them through all before it
                break
            depth = run.start
            self._drop(visit.bit, worker, run)
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
        if now < self.next_expiry:
            return
        for bit, worker in self._workers.items():
            self._evict_older(bit, worker, now - self._ttl_s, inclusive=True)
        oldest = (worker.oldest().visit.at for worker in self._workers.values() if worker.runs)
        self.next_expiry = min(oldest, default=float("inf")) + self._ttl_s

    def purge(self, bit: int) -> None:
        """Forget the worker."""
        worker = self._workers.pop(bit, None)
        if worker:
            self._masks.drop(bit, worker.run_of)
            self.total -= len(worker.run_of)

    def clear(self) -> None:
        """Nothing is believed any more of the workers, which all stay."""
        for bit, worker in list(self._workers.items()):
            self.purge(bit)
            self.add_worker(bit, worker.capacity_blocks)

    def check(self) -> None:
        """Assert that bounds hold, times rise, runs are whole and masks agree. O(blocks)."""
        assert self.total == sum(len(worker.run_of) for worker in self._workers.values())
        for bit, worker in self._workers.items():
            times = [run.visit.at for run in worker.runs]
            assert times == sorted(times)
            held = len(worker.run_of)
            assert worker.capacity_blocks is None or held <= worker.capacity_blocks
            assert not times or self.next_expiry <= times[0] + self._ttl_s
            assert held == sum(len(run.ids) for run in worker.runs)
            seen: set[_Run] = set()
            for run in worker.runs:
                assert run.ids
                assert run.parent is None or run.parent.end == run.start
                assert run.parent is None or run.parent in worker.runs
                assert run.parent not in seen, "a run stands behind its parent"
                seen.add(run)
                for block in run.ids:
                    assert worker.run_of[block] is run
                    assert self._masks.get(block, 0) & bit, f"block {block} lacks its bit"

    def shrink(self, blocks: int) -> None:
        """So many leave, or all there are: of all workers the least recently used."""
        left = max(0, self.total - blocks)
        while self.total > left:
            bit, worker = min(
                ((bit, worker) for bit, worker in self._workers.items() if worker.runs),
                key=lambda item: item[1].oldest().visit.at,
            )
            self._evict(bit, worker, min(self.total - left, len(worker.oldest().ids)))

    def _evict_older(
        self, bit: int, worker: _Worker, at: float, *, inclusive: bool = False
    ) -> None:
        while worker.runs:
            run = worker.oldest()
            if run.visit.at > at or (run.visit.at == at and not inclusive):
                return
            self._drop(bit, worker, run)

    def _evict(self, bit: int, worker: _Worker, blocks: int) -> None:
        """The least recently used blocks go, of one prompt the deepest first."""
        while blocks > 0:
            run = worker.oldest()
            kept = len(run.ids) - blocks
            if kept > 0:
                gone, run.ids = run.ids[kept:], run.ids[:kept]
                self._lose(bit, worker, gone)
                return
            blocks = -kept
            self._drop(bit, worker, run)

    def _drop(self, bit: int, worker: _Worker, run: _Run) -> None:
        del worker.runs[run]
        self._lose(bit, worker, run.ids)

    def _lose(self, bit: int, worker: _Worker, ids: Sequence[int]) -> None:
        for block in ids:
            del worker.run_of[block]
        self._masks.drop(bit, ids)
        self.total -= len(ids)


def _run_up_to(worker: _Worker, block: int, end: int) -> _Run:
    """The run that ends with this block, the `end`th; cut off from a longer one if need be."""
    run = worker.run_of[block]
    if run.end == end:
        return run
    length = end - run.start
    front = _Run(run.start, run.ids[:length], run.parent, run.visit)
    # The rest keeps its place in the order. The front is about to be moved to its end.
    run.start, run.ids, run.parent = end, run.ids[length:], front
    worker.run_of.update(dict.fromkeys(front.ids, front))
    worker.runs[front] = None
    return front


def _take_over(worker: _Worker, last: _Run | None, visit: Visit) -> tuple[Earlier, ...]:
    """All runs up to `last` are the visit's now; who had used them before, deepest first."""
    earlier: list[Earlier] = []
    before: Visit | None = None
    run = last
    while run is not None:
        if earlier and run.visit is before:
            earlier.pop()
        before = run.visit
        earlier.append(Earlier(run.start, before.at, before.answered))
        run.visit = visit
        worker.runs.move_to_end(run)
        run = run.parent
    return tuple(earlier)
