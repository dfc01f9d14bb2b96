"""Where a block may be held, as a walk asks: in tables of blocks, and in claimed pieces."""

from collections.abc import Sequence

import msgspec

from radixgate.radix_mirror.claimed_pieces import ClaimedPiece, ClaimedPieces
from radixgate.radix_mirror.walk import FallOffs, Lookup, fall_offs


class Tables(msgspec.Struct, frozen=True):
    """A block is held if any of these says so. A Struct: one is made for every request."""

    lookups: Sequence[Lookup]  # block by block; that of the device is the first
    claimed: ClaimedPieces

    def fall_offs(self, alive: int, ids: Sequence[int], start: int) -> FallOffs:
        """As `walk.fall_offs`, along blocks that begin where a piece does and reach no further.

        O(1) for who claims all of them, O(blocks until they fell) for the others.
        """
        alike = self.claimed.by_first.get(ids[0]) if ids else None
        if alike is None:
            return fall_offs(self.lookups, alive, ids, start)
        whole = 0
        parts: dict[int, int] = {}
        piece: ClaimedPiece | None = alike
        while piece is not None:
            if mask := piece.mask & alive:
                if piece.last == ids[-1] or (shared := piece.shared(ids)) == len(ids):
                    whole |= mask
                else:
                    for block in ids[:shared]:
                        parts[block] = parts.get(block, 0) | mask
            piece = piece.alike
        if whole == alive:
            return FallOffs((), whole, whole)
        lookups = [*self.lookups, parts.get] if parts else self.lookups
        found = fall_offs(lookups, alive ^ whole, ids, start)
        return FallOffs(found.falls, found.left | whole, found.leaning | whole)
