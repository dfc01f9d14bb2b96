"""Blocks that a worker is about to hold: prompts sent or queued, until their KV is reported."""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from radixgate.radix_mirror.block_masks import BlockMasks


@dataclass(slots=True, eq=False)
class Claim:
    """One prompt's blocks on one worker, counted until released."""

    bit: int
    serial: int
    ids: Sequence[int]  # empty once released


class Claims:
    """How many live claims stand behind each block of each worker.

    A block that the worker reports as stored is no claim any more, whoever claimed it. The bits of
    claimed blocks are set in `masks`.
    """

    def __init__(self, masks: BlockMasks) -> None:
        self._masks = masks
        # bit -> block -> serial of the first claim since the last confirmation. None is empty: a
        # table that was large stays large, and 256 of them are more than a processor's cache.
        self._blocks: dict[int, dict[int, int]] = {}
        # bit -> block -> live claims besides one; none of zero
        self._others: dict[int, Counter[int]] = {}
        self._serial = 0
        self._total = 0

    def __len__(self) -> int:
        """Claimed blocks of all workers."""
        return self._total

    def count(self, bit: int) -> int:
        """Claimed blocks of one worker."""
        return len(self._blocks.get(bit, ()))

    def any_of(self, bit: int, ids: Sequence[int]) -> bool:
        """Whether a block of these is claimed for the worker. O(blocks), 20 ns each."""
        blocks = self._blocks.get(bit)
        return blocks is not None and not blocks.keys().isdisjoint(ids)

    def make(self, bit: int, ids: Sequence[int]) -> Claim:
        """Count these blocks for the worker at once. O(blocks), 0.2 us each."""
        self._serial += 1
        blocks = self._blocks.get(bit)
        fresh: dict[int, int]
        if blocks is None:
            fresh = dict.fromkeys(ids, self._serial)
            if fresh:
                self._blocks[bit] = fresh
        elif blocks.keys().isdisjoint(ids):
            fresh = dict.fromkeys(ids, self._serial)
            blocks.update(fresh)
        else:
            fresh = dict.fromkeys((block for block in ids if block not in blocks), self._serial)
            self._others.setdefault(bit, Counter()).update(b for b in ids if b in blocks)
            blocks.update(fresh)
        self._masks.add(bit, fresh)
        self._total += len(fresh)
        return Claim(bit, self._serial, ids)

    def release(self, claim: Claim) -> None:
        """Withdraw a claim; what others claim stays. Twice is harmless."""
        blocks = self._blocks.get(claim.bit, {})
        others = self._others.get(claim.bit, Counter())
        gone = []
        for block in claim.ids:
            first = blocks.get(block)
            # An entry younger than the claim began after a confirmation had ended this one's share.
            if first is None or claim.serial < first:
                continue
            left = others.pop(block, 0)
            if not left:
                del blocks[block]
                gone.append(block)
            elif left > 1:
                others[block] = left - 1
        if gone and not blocks:
            del self._blocks[claim.bit]
        self._masks.drop(claim.bit, gone)
        self._total -= len(gone)
        claim.ids = ()

    def confirm(self, bit: int, ids: Sequence[int]) -> None:
        """The worker stores these blocks: nothing of them is a claim any more."""
        blocks = self._blocks.get(bit)
        if not blocks:
            return
        known = [block for block in ids if blocks.pop(block, None)]
        others = self._others.get(bit)
        if others:
            for block in known:
                others.pop(block, None)
        if not blocks:
            del self._blocks[bit]
        self._masks.drop(bit, known)
        self._total -= len(known)

    def purge(self, bit: int) -> None:
        """Forget the worker. Its claims may still be released, which then does nothing."""
        blocks = self._blocks.pop(bit, {})
        self._others.pop(bit, None)
        self._masks.drop(bit, blocks)
        self._total -= len(blocks)

    def check(self) -> None:
        """Assert that counts are positive and masks agree. O(claimed blocks)."""
        assert self._total == sum(map(len, self._blocks.values()))
        for bit, blocks in self._blocks.items():
            assert blocks
            for block, serial in blocks.items():
                assert 0 < serial <= self._serial
                assert self._masks.get(block, 0) & bit, f"block {block} lacks its bit"
        for bit, others in self._others.items():
            for block, live in others.items():
                assert live > 0, f"block {block} is claimed by nobody else"
                assert block in self._blocks[bit], f"block {block} is claimed by nobody"


class TimedClaims:
    """Claims that leave by themselves, soonest first.

    How many there may be is the mirror's budget; beyond it the nearest deadline leaves early.
    """

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._heap: list[tuple[float, int, Claim]] = []

    def set(self, claim: Claim, deadline: float) -> None:
        """`deadline`: on the mirror's clock, seconds. O(log claims)."""
        if not claim.ids:
            return
        heapq.heappush(self._heap, (deadline, claim.serial, claim))

    def __len__(self) -> int:
        """Claims, released ones among them whose deadline has not come."""
        return len(self._heap)

    def release_soonest(self) -> bool:
        """The nearest deadline comes now; False: there is none."""
        if not self._heap:
            return False
        self._claims.release(heapq.heappop(self._heap)[2])
        return True

    def expire(self, now: float) -> bool:
        """Release what is due, if anything is; O(1) if not."""
        if not self._heap or self._heap[0][0] > now:
            return False
        while self._heap and self._heap[0][0] <= now:
            self._claims.release(heapq.heappop(self._heap)[2])
        return True
