"""The blocks of the pieces that one worker is expected to hold, for who asks by block."""

from collections.abc import Collection, Sequence

from radixgate.radix_mirror.claims import Claim

# Blocks of claims that are over stay until they are as many as the others, and so many more.
_SPARE = 4_096


class ClaimedBlocks:
    """Listed when somebody asks, as nobody does while nothing is removed. Never too few."""

    def __init__(self) -> None:
        self._blocks: set[int] = set()
        self._listed_to = 0  # serial of the last claim whose blocks are listed

    def __len__(self) -> int:
        """Listed blocks."""
        return len(self._blocks)

    def have_any(self, ids: Sequence[int], claims: Collection[Claim], size: int) -> bool:
        """Whether any of `ids` is in the pieces, of so many blocks, that these claims have now.

        O(ids + blocks of claims that have come since the last time).
        """
        new = [claim for claim in claims if claim.serial > self._listed_to]
        if new:
            live = size * sum(len(claim.pieces) for claim in claims)
            if len(self._blocks) > 2 * live + _SPARE:
                self._blocks, new = set(), list(claims)
            for claim in new:
                first, last = claim.pieces[0], claim.pieces[-1]
                self._blocks.update(claim.ids[first.start : last.start + size])
            self._listed_to = max(claim.serial for claim in new)
        return not self._blocks.isdisjoint(ids)
