"""Whole pieces of prompts that workers are about to hold: one entry a piece instead of a block."""

from collections.abc import Iterator, Sequence

import msgspec

# Prompts that part within a piece have one each; beyond so many, blocks are claimed one by one
# there, as a walk compares the piece to which it comes with each of these.
_MOST_ALIKE = 4


class ClaimedPiece(msgspec.Struct, eq=False):
    """So many blocks as others, at a depth that is a multiple of their number; somebody claims it.

    Its last block's id names all of it.
    """

    prompt: Sequence[int]  # one that goes through it
    start: int  # the depth of its first block
    last: int  # its last block
    mask: int  # the workers for which it is claimed
    more: dict[int, int] | None  # by bit, how many more than one claim it; none of zero
    alike: "ClaimedPiece | None"  # another one that begins with the same block
    listed: int = 0  # of its workers, those for which its blocks are listed one by one

    def blocks(self, size: int) -> Sequence[int]:
        """Its blocks, of which there are `size`. O(blocks)."""
        return self.prompt[self.start : self.start + size]

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
    """By first block. A worker for which a piece is claimed holds all of it: what it had not stored
    when the claim was made is claimed, and it has lost nothing since."""

    def __init__(self, size: int) -> None:
        """`size`: the blocks of a piece."""
        self.size = size
        self.by_first: dict[int, ClaimedPiece] = {}  # the first of those that are alike
        self.blocks = 0  # of all pieces
        self._of: dict[int, int] = {}  # by bit, the pieces that are claimed for it; none of zero

    def count(self, bit: int) -> int:
        """Blocks of the pieces that are claimed for one worker. O(1)."""
        return self.size * self._of.get(bit, 0)

    def hold(self, bit: int, prompt: Sequence[int], start: int) -> list[ClaimedPiece]:
        """Claim all pieces of a prompt that reach beyond the depth `start`, but for those to which
        too many others are alike. O(pieces)."""
        size, known = self.size, self.by_first
        held, fresh = [], 0
        at = start - start % size
        for first, last in zip(prompt[at::size], prompt[at + size - 1 :: size], strict=False):
            piece = alike = known.get(first)
            while piece is not None and piece.last != last:
                piece = piece.alike
            if piece is None:
                if alike is not None and _many(alike):
                    at += size
                    continue
                piece = known[first] = ClaimedPiece(prompt, at, last, bit, None, alike)
                self.blocks += size
                fresh += 1
            elif piece.mask & bit:
                more = piece.more = piece.more or {}
                more[bit] = more.get(bit, 0) + 1
            else:
                piece.mask |= bit
                fresh += 1
            held.append(piece)
            at += size
        if fresh:
            self._of[bit] = self._of.get(bit, 0) + fresh
        return held

    def drop(self, bit: int, held: Sequence[ClaimedPiece]) -> None:
        """One claim of each leaves. O(pieces)."""
        gone = 0
        for piece in held:
            more = piece.more
            if more and bit in more:
                more[bit] -= 1
                if not more[bit]:
                    del more[bit]
                continue
            piece.mask ^= bit
            piece.listed &= ~bit
            gone += 1
            if not piece.mask:
                self._end(piece)
        if gone:
            self._of[bit] -= gone
            if not self._of[bit]:
                del self._of[bit]

    def claims(self) -> int:
        """How often pieces are claimed. O(pieces x workers)."""
        return sum(
            piece.mask.bit_count() + sum((piece.more or {}).values()) for piece in self.pieces()
        )

    def pieces(self) -> Iterator[ClaimedPiece]:
        """All of them."""
        for alike in self.by_first.values():
            yield from _alike(alike)

    def masks(self) -> dict[int, int]:
        """By block, for `check`: a walk asks by piece. O(blocks)."""
        masks: dict[int, int] = {}
        for piece in self.pieces():
            for block in piece.blocks(self.size):
                masks[block] = masks.get(block, 0) | piece.mask
        return masks

    def check(self) -> None:
        """Assert that each stands where it begins, and is claimed by somebody. O(pieces)."""
        known = list(self.pieces())
        for bit, pieces in self._of.items():
            assert 0 < pieces == sum(bool(piece.mask & bit) for piece in known)
        assert sum(self._of.values()) == sum(piece.mask.bit_count() for piece in known)
        assert self.blocks == self.size * len(known)
        for piece in known:
            assert piece in _alike(self.by_first[piece.prompt[piece.start]])
            assert piece.start % self.size == 0
            assert piece.last == piece.prompt[piece.start + self.size - 1]
            assert piece.mask > 0
            assert not piece.listed & ~piece.mask
            assert all(piece.mask & bit and more > 0 for bit, more in (piece.more or {}).items())
        assert len({piece.last for piece in known}) == len(known)

    def _end(self, piece: ClaimedPiece) -> None:
        self.blocks -= self.size
        first = piece.prompt[piece.start]
        before = self.by_first[first]
        if before is not piece:
            while before.alike is not piece:
                assert before.alike is not None
                before = before.alike
            before.alike = piece.alike
        elif piece.alike is None:
            del self.by_first[first]
        else:
            self.by_first[first] = piece.alike


def _alike(piece: ClaimedPiece | None) -> Iterator[ClaimedPiece]:
    while piece is not None:
        yield piece
        piece = piece.alike


def _many(piece: ClaimedPiece) -> bool:
    """Whether these are as many as may be alike."""
    return sum(1 for _ in _alike(piece)) >= _MOST_ALIKE
