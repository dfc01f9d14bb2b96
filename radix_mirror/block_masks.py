"""Which workers hold a block: a bit mask per block id, the mirror's one table."""

from collections.abc import Callable, Iterable, Sequence, Sized
from functools import partial
from typing import overload

from radixgate.radix_mirror.pieces import Pieces
from radixgate.radix_mirror.walk import without


class BlockMasks:
    """Block id -> mask with one bit per worker that holds it; a block nobody holds has no entry.

    Consecutive blocks held by the same workers share one mask object: it saves memory, and a walk
    compares identities before it compares masks.
    """

    __slots__ = ("_masks", "_pieces", "lookup", "without")

    def __init__(self, pieces: Pieces) -> None:
        """`pieces` are told of each change."""
        self._masks: dict[int, int] = {}
        # `get` without a Python frame, for the walk along a prompt.
        self.lookup: Callable[[int, int], int] = self._masks.get
        # Of a bit and blocks those where it is not set, likewise (`walk.without`).
        self.without: Callable[[int, Sequence[int]], Sequence[int]] = partial(without, self.lookup)
        self._pieces = pieces

    def __len__(self) -> int:
        return len(self._masks)

    @overload
    def get(self, block: int) -> int | None: ...
    @overload
    def get(self, block: int, default: int) -> int: ...
    def get(self, block: int, default: int | None = None) -> int | None:
        return self._masks.get(block, default)

    @property
    def entries(self) -> Sized:
        """What it holds, to be counted, or asked whether there is any, without a Python frame."""
        return self._masks

    def add(self, bit: int, ids: Iterable[int]) -> list[int]:
        """Set the bit in every block; returns those where it was not set. O(blocks)."""
        masks = self._masks
        fresh = dict.fromkeys(ids, bit)
        if masks.keys().isdisjoint(fresh):
            masks.update(fresh)
            self._pieces.touch(bit, fresh)
            return list(fresh)
        get = masks.get
        old, new = 0, bit
        added = []
        for block in fresh:
            mask = get(block)
            if mask is None:
                masks[block] = bit
            elif mask & bit:
                continue
            else:
                if mask is not old:
                    old, new = mask, mask | bit
                masks[block] = new
            added.append(block)
        self._pieces.touch(bit, added)
        return added

    def drop(self, bit: int, ids: Iterable[int]) -> list[int]:
        """Clear the bit in every block; returns those where it was set. O(blocks)."""
        masks = self._masks
        get = masks.get
        old = new = 0
        dropped = []
        for block in ids:
            mask = get(block)
            if mask is None or not mask & bit:
                continue
            if mask is not old:
                old, new = mask, mask ^ bit
            if new:
                masks[block] = new
            else:
                del masks[block]
            dropped.append(block)
        self._pieces.touch(bit, dropped)
        return dropped

    def purge(self, bit: int) -> None:
        """Clear the bit everywhere. O(all blocks): about 60 ms for a million."""
        self.drop(bit, [block for block, mask in self._masks.items() if mask & bit])

    def holding(self, bit: int) -> list[int]:
        """The blocks whose bit is set. O(all blocks)."""
        return [block for block, mask in self._masks.items() if mask & bit]

    def check(self, bits: int) -> None:
        """Assert that every entry names a worker, and none but those of `bits`. O(all blocks)."""
        for block, mask in self._masks.items():
            assert mask > 0, f"block {block} is held by nobody"
            assert mask & ~bits == 0, f"block {block} is held by a worker that is gone"
