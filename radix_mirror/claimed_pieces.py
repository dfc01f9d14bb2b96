"""Whole pieces of prompts that workers are about to hold: one entry a piece instead of a block."""

from collections.abc import Sequence

import msgspec

# Prompts that part within a piece have one each; beyond so many, blocks are claimed one by one
# there, as a walk compares the piece to which it comes with each of these.
_MOST_SIBLINGS = 4


class ClaimedPiece(msgspec.Struct, eq=False):
    """So many blocks as others, at a depth that is a multiple of their number; somebody claims it.

    Its last block's id names all of it.
    """

    prompt: Sequence[int]  # one that goes through it
    start: int  # the depth of its first block
    last: int  # its last block
    mask: int  # the workers for which it is claimed
    claims: dict[int, int]  # by bit, how many; none of zero

    def shared(self, ids: Sequence[int]) -> int:
        """With how many of its blocks `ids` begin, of which the first is its own. O(log blocks)."""
        prompt, start = self.prompt, self.start
        low, high = 0, len(ids) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if prompt[start + middle] == ids[middle]:
                low = middle
            else:
                high = middle - 1
        return low + 1


class ClaimedPieces:
    """By first and by last block. A worker for which a piece is claimed holds all of it: what it
    had not stored when the claim was made is claimed, and it has reported nothing since."""

    def __init__(self, size: int) -> None:
        """`size`: the blocks of a piece."""
        self.size = size
        self.by_last: dict[int, ClaimedPiece] = {}
        self.by_first: dict[int, list[ClaimedPiece]] = {}

    def hold(self, bit: int, prompt: Sequence[int], start: int) -> list[ClaimedPiece]:
        """Claim all pieces of a prompt that reach beyond the depth `start`, but for those to which
        too many others are alike. O(pieces)."""
        size, known = self.size, self.by_last
        held = []
        at = start - start % size
        for last in prompt[at + size - 1 :: size]:
            piece = known.get(last)
            if piece is None:
                piece = self._begin(prompt, at, last)
            if piece is not None:
                piece.mask |= bit
                claims = piece.claims
                claims[bit] = claims.get(bit, 0) + 1
                held.append(piece)
            at += size
        return held

    def drop(self, bit: int, held: Sequence[ClaimedPiece]) -> None:
        """One claim of each leaves. O(pieces)."""
        for piece in held:
            claims = piece.claims
            left = claims[bit] - 1
            if left:
                claims[bit] = left
                continue
            del claims[bit]
            piece.mask ^= bit
            if not claims:
                self._end(piece)

    def masks(self) -> dict[int, int]:
        """By block. O(blocks)."""
        masks: dict[int, int] = {}
        for piece in self.by_last.values():
            for block in piece.prompt[piece.start : piece.start + self.size]:
                masks[block] = masks.get(block, 0) | piece.mask
        return masks

    def check(self) -> None:
        """Assert that both tables have the same, and nothing that nobody claims. O(pieces)."""
        known = [piece for pieces in self.by_first.values() for piece in pieces]
        assert all(self.by_first.values())
        assert len(known) == len(self.by_last)
        for piece in known:
            assert self.by_last[piece.last] is piece
            assert piece in self.by_first[piece.prompt[piece.start]]
            assert piece.start % self.size == 0
            assert piece.last == piece.prompt[piece.start + self.size - 1]
            assert piece.mask == sum(piece.claims) > 0
            assert min(piece.claims.values()) > 0

    def _begin(self, prompt: Sequence[int], start: int, last: int) -> ClaimedPiece | None:
        siblings = self.by_first.setdefault(prompt[start], [])
        if len(siblings) >= _MOST_SIBLINGS:
            return None
        piece = self.by_last[last] = ClaimedPiece(prompt, start, last, 0, {})
        siblings.append(piece)
        return piece

    def _end(self, piece: ClaimedPiece) -> None:
        del self.by_last[piece.last]
        first = piece.prompt[piece.start]
        siblings = self.by_first[first]
        siblings.remove(piece)
        if not siblings:
            del self.by_first[first]
