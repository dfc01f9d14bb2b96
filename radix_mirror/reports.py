"""What workers have reported: their stored blocks by tier, and the prompts pending at them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.proto.kv_updates import Digest
from radixgate.radix_mirror.block_masks import BlockMasks
from radixgate.radix_mirror.claims import Claim
from radixgate.radix_mirror.sent_prompts import SentPrompts

# A worker reports one pending prompt per request that waits; one that never settles any is
# believed no further back than this.
MAX_PENDING_PROMPTS = 16_384


@dataclass(slots=True, eq=False)
class WorkerReports:
    """One worker's reports. Changed by `ReportedBlocks` only."""

    bit: int
    epoch: int | None = None  # None: nothing has been reported yet
    complete: bool = False  # a whole snapshot has been applied since the last reset
    late_updates: int = 0  # discarded, as they were of an epoch that is over
    counts: list[int] = field(default_factory=lambda: [0] * len(Tier))
    xors: list[int] = field(default_factory=lambda: [0] * len(Tier))
    pending: dict[int, Claim] = field(default_factory=dict)

    def digests(self) -> Mapping[Tier, Digest]:
        return {tier: Digest(self.counts[tier], self.xors[tier]) for tier in Tier}


class ReportedBlocks:
    """A table of masks per tier; of pending prompts and confirmations `SentPrompts` knows."""

    def __init__(self, tables: Sequence[BlockMasks], sent: SentPrompts) -> None:
        """`tables`: by tier."""
        self.tables = tables
        self._sent = sent

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    def reset(self, worker: WorkerReports, epoch: int | None) -> None:
        """Forget all that the worker reported. O(all blocks) if it had stored any."""
        for key in list(worker.pending):
            self._settle(worker, key)
        self._sent.enter(worker.bit)
        for tier in Tier:
            if worker.counts[tier]:
                self.tables[tier].purge(worker.bit)
            worker.counts[tier] = worker.xors[tier] = 0
        worker.epoch = epoch
        worker.complete = False

    def apply(self, worker: WorkerReports, epoch: int, events: Sequence[KvEvent]) -> None:
        """Take over what happened, in order; events of another epoch are counted and void."""
        if worker.epoch != epoch:
            worker.late_updates += 1
            return
        for event in events:
            match event:
                case Stored():
                    if event.tier is not Tier.DEVICE:
                        self._sent.enter(worker.bit)
                    added = self.tables[event.tier].add(worker.bit, event.ids)
                    _count(worker, event.tier, added, 1)
                    self._sent.confirm(worker.bit, event.ids)
                case Removed():
                    if event.tier is Tier.DEVICE:
                        self._sent.lose(worker.bit, event.ids)
                    gone = self.tables[event.tier].drop(worker.bit, event.ids)
                    _count(worker, event.tier, gone, -1)
                case Pending():
                    self._await(worker, event)
                case Settled():
                    self._settle(worker, event.key)

    def depth(self, worker: WorkerReports, ids: Sequence[int]) -> int:
        """How many leading blocks of a prompt it has reported, in any tier. O(depth x tiers)."""
        held = [table.lookup for table in self.tables if len(table)]
        for depth, block in enumerate(ids):
            if not any(mask(block, 0) & worker.bit for mask in held):
                return depth
        return len(ids)

    def check(self, worker: WorkerReports) -> None:
        """Assert that the worker's digests are those of its blocks. O(all blocks)."""
        for tier in Tier:
            blocks = self.tables[tier].holding(worker.bit)
            xor = 0
            for block in blocks:
                xor ^= block
            assert (len(blocks), xor) == (worker.counts[tier], worker.xors[tier]), tier

    def _await(self, worker: WorkerReports, event: Pending) -> None:
        self._settle(worker, event.key)
        if len(worker.pending) >= MAX_PENDING_PROMPTS:
            self._settle(worker, next(iter(worker.pending)))
        worker.pending[event.key] = self._sent.wait(worker.bit, event.ids)

    def _settle(self, worker: WorkerReports, key: int) -> None:
        claim = worker.pending.pop(key, None)
        if claim is not None:
            self._sent.release(claim)


def _count(worker: WorkerReports, tier: Tier, blocks: Sequence[int], sign: int) -> None:
    xor = worker.xors[tier]
    for block in blocks:
        xor ^= block
    worker.xors[tier] = xor
    worker.counts[tier] += sign * len(blocks)
