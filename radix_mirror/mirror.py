"""What the gateway believes each worker has in its prefix cache, over block ids."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from radixgate.clock import Clock
from radixgate.proto.kv_events import KvEvent, Tier
from radixgate.proto.kv_updates import Digest
from radixgate.radix_mirror.approximate import ApproximateBlocks
from radixgate.radix_mirror.balance import Balance
from radixgate.radix_mirror.block_masks import BlockMasks
from radixgate.radix_mirror.budget import MirrorWeight
from radixgate.radix_mirror.claims import Claims
from radixgate.radix_mirror.mirror_config import MirrorConfig
from radixgate.radix_mirror.pieces import PIECE_BLOCKS, Pieces
from radixgate.radix_mirror.placement import Claimed, Placement, Visiting
from radixgate.radix_mirror.reports import ReportedBlocks, WorkerReports
from radixgate.radix_mirror.sent_prompts import SentPrompts
from radixgate.radix_mirror.tables import Tables
from radixgate.radix_mirror.timed_prompts import TimedPrompts
from radixgate.radix_mirror.walk import Depths, fill_without_holes
from radixgate.radix_mirror.worker_blocks import WorkerBlocks

__all__ = ["MirrorConfig", "Placement", "RadixMirror", "WorkerBlocks"]


@dataclass(frozen=True, slots=True, eq=False)
class _Worker:
    bit: int
    incarnation: int
    reports_kv: bool
    reports: WorkerReports


class RadixMirror:
    """The radix tree of every worker's prefixes, kept flat: block id -> mask of workers.

    An id names its whole prefix, so a walk along a prompt's ids finds the depth of all workers in
    one pass. The walk is linear where workers report: one may have holes (an engine that evicts in
    the middle, an event on its way), and a binary search would look past them. Not thread-safe.
    """

    def __init__(
        self, clock: Clock, config: MirrorConfig | None = None, piece_blocks: int = PIECE_BLOCKS
    ) -> None:
        """`piece_blocks`: how many blocks of a walk are remembered together."""
        config = config or MirrorConfig()
        self._clock = clock
        self._workers: dict[str, _Worker] = {}
        self._all = 0  # the bits of all workers
        self._incarnation = 0
        self.generation = 0  # differs when a worker has come or gone: places may be others'
        self._pieces = Pieces(piece_blocks)
        self._believed = BlockMasks(self._pieces)
        tables = [BlockMasks(self._pieces) for _ in Tier]
        self._claims = Claims(self._pieces)
        self._sent = SentPrompts(self._claims, self._pieces, tables[Tier.DEVICE])
        self._deadlines = TimedPrompts(self._sent)
        self._reported = ReportedBlocks(tables, self._sent)
        self._approximate = ApproximateBlocks(self._believed, config.mirror_ttl_s)
        self._device = tables[Tier.DEVICE]
        elsewhere: list[BlockMasks | Claims] = [*tables[1:], self._claims, self._believed]
        self._others = [table.lookup for table in elsewhere]
        self._entries = [table.entries for table in elsewhere]
        self._stored = [table.entries for table in tables]
        # All empty: nothing reported or claimed.
        self._told = [*self._stored, self._claims.entries, self._sent.entries]
        self._due = math.inf  # before that nothing has to leave
        # The last prompt looked for, and who holds some of it otherwise than stored on its device.
        self._looked: tuple[Sequence[int], int] = ((), 0)
        budget = config.mirror_budget_bytes
        beliefs = self._deadlines, self._pieces, self._approximate
        self._balance = Balance(self._stored, *beliefs, budget)

    def __len__(self) -> int:
        """Entries: blocks per table; one both stored and expected counts in each."""
        return len(self._reported) + self.expected() + len(self._believed)

    # ------------------------------------------------------------ who is there

    def add_worker(
        self, worker_id: str, *, reports_kv: bool = True, capacity_blocks: int | None = None
    ) -> None:
        """A worker begins cold, also one that is there already.

        `capacity_blocks` bounds what is believed of one that reports nothing; None: it is unknown.
        """
        self.remove_worker(worker_id)
        bit = ~self._all & (self._all + 1)  # the lowest that is free
        self._incarnation += 1
        self.generation += 1
        self._pieces.touch_all(bit)
        self._workers[worker_id] = _Worker(bit, self._incarnation, reports_kv, WorkerReports(bit))
        self._all |= bit
        if not reports_kv:
            self._approximate.add_worker(bit, capacity_blocks)

    def remove_worker(self, worker_id: str) -> None:
        """Nothing of it is left; twice is harmless. O(all blocks), 60 ms for a million."""
        worker = self._workers.pop(worker_id, None)
        if worker is None:
            return
        self._sent.purge(worker.bit)
        self._reported.reset(worker.reports, None)
        self._approximate.purge(worker.bit)
        self.generation += 1
        self._all ^= worker.bit

    def incarnation(self, worker_id: str) -> int | None:
        """Differs each time the id is added; None: it is not there."""
        worker = self._workers.get(worker_id)
        return worker.incarnation if worker else None

    # ------------------------------------------------------------ the question

    def place(self, worker_id: str) -> int:
        """The worker's place in `column`, while `generation` stays. KeyError: it is gone."""
        return self._workers[worker_id].bit.bit_length() - 1

    def column(self, ids: Sequence[int]) -> Depths:
        """How many leading blocks of a prompt each worker holds, by place. A list of the caller's.

        O(blocks until the last falls off): 512 on 256 workers 60 us, or 6 where none reports.
        """
        if (now := self._clock.now()) >= self._due:
            self._expire(now)
        depths = [0] * self._all.bit_length()
        if any(self._told):
            leaning = self._pieces.fill(depths, self._tables(), self._all, ids)
            if len(ids) >= self._pieces.shortest:  # else nothing of it is remembered
                self._balance.walked(len(ids), len(depths))
        else:
            leaning = self._all
            fill_without_holes(depths, self._believed.lookup, self._all, ids)
        self._looked = ids, leaning
        return depths

    def depths(self, ids: Sequence[int]) -> dict[str, int]:
        """`column` by name; a worker with none is left out."""
        depths = self.column(ids)
        return {name: depths[at] for name in self._workers if depths[at := self.place(name)]}

    def confirmed_depth(self, worker_id: str, ids: Sequence[int]) -> int:
        """Of its depth, what this worker has reported as stored. O(depth); 0 of an unknown one."""
        worker = self._workers.get(worker_id)
        return self._reported.depth(worker.reports, ids) if worker else 0

    # ------------------------------------------------------------ what workers report

    def reset(self, worker_id: str, epoch: int) -> None:
        """Forget all that the worker reported; only events of `epoch` count from now on."""
        worker = self._workers.get(worker_id)
        if worker is not None:
            self._reported.reset(worker.reports, epoch)
            self._balance.keep()

    def apply(self, worker_id: str, epoch: int, events: Sequence[KvEvent]) -> None:
        """Take over what happened. Events of another epoch, or of a worker that is gone, are void.

        O(block ids), about 0.3 us each.
        """
        worker = self._workers.get(worker_id)
        if worker is not None:
            self._reported.apply(worker.reports, epoch, events)
            self._balance.keep()

    def complete(self, worker_id: str, epoch: int) -> None:
        """A whole snapshot of this epoch has been applied."""
        worker = self._workers.get(worker_id)
        if worker is not None and worker.reports.epoch == epoch:
            worker.reports.complete = True

    def digests(self, worker_id: str) -> Mapping[Tier, Digest]:
        """Count and XOR of what the worker reported as stored, by tier; nothing of unknown ones."""
        worker = self._workers.get(worker_id)
        return worker.reports.digests() if worker else {}

    def stored_by(self, worker_id: str) -> Mapping[Tier, Sequence[int]]:
        """The blocks that a worker has reported as stored, by tier. O(all blocks)."""
        worker = self._workers.get(worker_id)
        if worker is None:
            return {}
        return {tier: self._reported.tables[tier].holding(worker.bit) for tier in Tier}

    # ------------------------------------------------------------ what we sent

    def expect(
        self, worker_id: str, ids: Sequence[int], keep_s: float, held: int = 0
    ) -> Placement | None:
        """A prompt goes to this worker: its blocks count for it at once. None: it is gone.

        `held`: its depth, if `column` has just told it; 0: unknown. For a worker with events they
        leave when confirmed or after `keep_s`; for one without they stay by recency. O(blocks).
        """
        worker = self._workers.get(worker_id)
        if worker is None:
            return None
        now = self._clock.now()
        if now >= self._due:
            self._expire(now)
        if not worker.reports_kv:
            visit = self._approximate.touch(worker.bit, ids, now)
            self._due = min(self._due, self._approximate.next_expiry)
            if visit.known < len(ids):
                self._balance.sent(len(ids))
            return Placement(worker_id, Visiting(self._approximate, visit))
        # What it holds is stored on its device if the last look has found nothing elsewhere: a
        # claim that is over since then is not taken for it.
        looked, leaning = self._looked
        start = 0 if leaning & worker.bit or looked is not ids else held
        claim = self._sent.send(worker.bit, ids, start)
        self._deadlines.set(claim, deadline := now + keep_s)
        if deadline < self._due:
            self._due = deadline
        self._balance.sent(len(ids) - start + self._pieces.size)
        return Placement(worker_id, Claimed(self._sent, claim))

    def withdraw(self, placement: Placement) -> None:
        """The prompt was not computed there: what only it stood for leaves. Twice is harmless."""
        placement.stay.withdraw()

    def answered(self, placement: Placement) -> None:
        """The worker sent its first output: the prompt's blocks are computed."""
        placement.stay.answered()

    def settle(self, placement: Placement, cached_blocks: int | None) -> None:
        """The prompt was computed. `cached_blocks`: how many of its blocks the worker had before.

        Corrects what is believed of a worker without events; None: the reply did not say.
        """
        placement.stay.settle(cached_blocks)

    def forget(self) -> int:
        """What was expected of workers, or believed of those without events, leaves; how many
        blocks that were, as `expected` counts. What a worker has reported stays: it is so until it
        reports otherwise.

        Placements may still be ended, which then does nothing. O(blocks).
        """
        before = self.expected() + len(self._believed)
        self._deadlines.expire(math.inf)
        self._approximate.clear()
        return before - self.expected() - len(self._believed)

    # ------------------------------------------------------------ itself

    def blocks_of(self, worker_id: str) -> WorkerBlocks:
        """What is held of one worker; zeros of an unknown one. O(1)."""
        worker = self._workers.get(worker_id)
        if worker is None:
            return WorkerBlocks(dict.fromkeys(Tier, 0), 0, 0, 0, None, False, 0)
        self._expire(self._clock.now())
        reports = worker.reports
        return WorkerBlocks(
            stored={tier: reports.counts[tier] for tier in Tier},
            expected=self._sent.count(worker.bit),
            approximate=self._approximate.count(worker.bit),
            pending_prompts=len(reports.pending),
            epoch=reports.epoch,
            complete=reports.complete,
            late_updates=reports.late_updates,
        )

    def expected(self) -> int:
        """Blocks that are expected of whichever worker; of a claimed piece all. O(1)."""
        return len(self._sent)

    def weight(self) -> MirrorWeight:
        """What it holds, and how many bytes that takes. O(1)."""
        return self._balance.weight()

    def check(self) -> None:
        """Assert that what is kept twice agrees. O(workers x blocks)."""
        for table in (*self._reported.tables, self._believed):
            table.check(self._all)
        self._pieces.check(self._tables(), self._all)
        self._balance.check()
        self._claims.check()
        self._sent.check()
        self._approximate.check()
        bits = 0
        for worker in self._workers.values():
            assert not bits & worker.bit
            bits |= worker.bit
            self._reported.check(worker.reports)
            assert len(self._believed.holding(worker.bit)) == self._approximate.count(worker.bit)
        assert bits == self._all

    def _expire(self, now: float) -> None:
        """What is due leaves."""
        self._deadlines.expire(now)
        self._approximate.expire(now)
        self._due = min(self._deadlines.soonest, self._approximate.next_expiry)

    def _tables(self) -> Tables:
        """Where a block may be held; an empty table is not asked. The device comes first."""
        lookups = [self._device.lookup, *compress(self._others, self._entries)]
        return Tables(lookups, self._sent.claimed)
