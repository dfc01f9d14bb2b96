"""What earlier walks found, in pieces of a prompt: who holds a piece, and where others fell off."""

from array import array
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, field

from radixgate.radix_mirror.changes import Changes
from radixgate.radix_mirror.paths import FEW, Path, Paths
from radixgate.radix_mirror.piece import Piece, StoredBlocks
from radixgate.radix_mirror.tables import Tables
from radixgate.radix_mirror.walk import Depths, FallOffs, enter_all, fill

# A piece of fewer blocks is looked at again sooner, one of more is passed sooner.
PIECE_BLOCKS = 64
# Blocks of the pieces that are remembered: 128 prompts of 2,048 blocks that share nothing.
MOST_BLOCKS = 262_144
# Prompts that part within a piece have one each. Beyond so many they are found anew: a change in
# what they share has to be told to each.
_MOST_SIBLINGS = 64
# A prompt of less than so many pieces is not worth to be remembered.
_SHORT = 2
# In one of less than so many, a look at each takes no longer than a hop over all of them.
HOP_PIECES = 16


@dataclass(slots=True, eq=False)
class _Stretch:
    """The pieces that begin with one block."""

    first: int  # that block
    start: int  # its depth
    seen: int  # no walk before this one has come through, as far as `Piece.walked` tells
    pieces: list[Piece] = field(default_factory=list)


class Pieces:
    """A walk along a prompt that hops over the pieces that an earlier one went through.

    Whatever changes who holds a block must be told by `touch`, so that a piece is looked at again
    for the worker concerned. Bounded in blocks; what no walk has come through goes first.
    """

    def __init__(
        self,
        blocks: int = PIECE_BLOCKS,
        most_blocks: int = MOST_BLOCKS,
        hop_pieces: int = HOP_PIECES,
    ) -> None:
        """`blocks` in each, so many in all; what is known of a prompt's first `hop_pieces` or more
        is hopped over as one."""
        self.size = blocks
        self.shortest = _SHORT * blocks  # a shorter prompt is not walked in pieces
        self._most = most_blocks
        self._hops_from = hop_pieces * blocks
        self._pieces: dict[int, Piece] = {}  # by last block
        self._stretches: dict[int, _Stretch] = {}  # by first block, the oldest first
        self._stretch_of: dict[int, _Stretch] = {}  # by any block
        self.paths = Paths()
        self._changes = Changes()

    def __len__(self) -> int:
        """Blocks of all pieces."""
        return len(self._stretch_of)

    @property
    def entries(self) -> Sized:
        """The blocks of all pieces, to be counted without a Python frame."""
        return self._stretch_of

    def fill(self, depths: Depths, tables: Tables, alive: int, ids: Sequence[int]) -> int:
        """As `walk.fill`; O(pieces) where earlier walks went, and O(blocks) of what has changed.

        A piece that nobody holds is not remembered: it would hardly be asked for again.
        """
        size, known = self.size, self._pieces
        if len(ids) < self.shortest:
            claimed = tables.claimed.by_first
            if not claimed or claimed.keys().isdisjoint(ids[::size]):
                return fill(depths, tables.lookups, alive, ids)
            found = _along(tables, alive, ids, size)
            enter_all(depths, found.falls, found.left, len(ids))
            return found.leaning
        self.paths.begin()
        leaning, end = 0, 0
        long = len(ids) >= self._hops_from
        path = self._hop(depths, tables, alive, ids) if long else None
        if path is None and (pieces := self._known_along(ids)):
            path = self.paths.walk(pieces, depths, tables, alive)
        if path is not None:
            leaning, alive, end = path.leaning, path.through, path.end
        for start in range(end, len(ids) - size + 1, size):
            if not alive:
                return leaning
            part = ids[start : start + size]
            if (piece := known.get(part[-1])) is None:
                found = tables.fall_offs(alive, part, start)
                if not found.left:
                    enter_all(depths, found.falls, 0, start + size)
                    return leaning | found.leaning
                piece = self._remember(part, start)
                piece.learn(alive, found)
            through = piece.walk(depths, tables, alive, self.paths.walk_number)
            leaning |= piece.leaning & alive
            alive = through
        start = len(ids) // size * size
        found = tables.fall_offs(alive, ids[start:], start)
        enter_all(depths, found.falls, found.left, len(ids))
        return leaning | found.leaning

    def _hop(self, depths: Depths, tables: Tables, alive: int, ids: Sequence[int]) -> Path | None:
        """The path that was walked to where the known pieces end, if there is one, and few have
        changed on it since; enters the depths. O(log pieces), O(blocks) of what has changed."""
        size, known, paths = self.size, self._pieces, self.paths
        low, high = 0, len(ids) // size
        while low < high:
            middle = (low + high + 1) // 2
            if ids[middle * size - 1] in known:
                low = middle
            else:
                high = middle - 1
        end = low * size
        path = paths.whole(ids[end - 1], alive) if end else None
        if path is None:
            return None
        changed = self._changes.since(path.walk, ids, end)
        if changed is None or len(changed) > FEW:
            return None
        for bit, depth in changed.items():
            if path.came_to(bit, depth):
                lasts = ids[(0 if path.leaning & bit else depth) + size - 1 : end : size]
                paths.look_for(bit.bit_length() - 1, path, map(known.__getitem__, lasts), tables)
        paths.went(path, ids[end - 1], depths)
        return path

    def _known_along(self, ids: Sequence[int]) -> Sequence[Piece]:
        """The known pieces with which a prompt begins."""
        known, size = self._pieces, self.size
        pieces: list[Piece] = []
        for last in ids[size - 1 :: size]:
            if (piece := known.get(last)) is None:
                break
            pieces.append(piece)
        return pieces

    def missing(
        self, bit: int, stored: StoredBlocks, ids: Sequence[int], start: int
    ) -> Sequence[int]:
        """What the worker has not stored of a prompt, from the depth `start` on.

        O(pieces) where it has stored nothing of a piece, else O(blocks).
        """
        size, known, own = self.size, self._pieces, len(ids)
        if own < self.shortest:
            return stored.without(bit, ids[start:])
        missing = array("Q")
        lacks = start  # from here on nothing is stored
        for end in range(start - start % size + size, own + size, size):
            piece = known.get(ids[end - 1]) if end <= own else None
            if piece is None or piece.stored_by(stored.lookup) & bit:
                part = stored.without(bit, ids[start:end])
                if len(part) < min(end, own) - start:
                    missing.extend(ids[lacks:start])
                    missing.extend(part)
                    lacks = end
            start = end
        missing.extend(ids[lacks:])
        return missing

    def touch(self, bit: int, ids: Iterable[int]) -> None:
        """The worker came to hold these blocks, or does so no more. O(blocks), 20 to 50 ns each."""
        stretch_of = self._stretch_of
        if not stretch_of or stretch_of.keys().isdisjoint(ids):
            return
        walk, note = self.paths.walk_number, self._changes.note
        for stretch in set(map(stretch_of.get, ids)):
            if stretch is not None:
                note(walk, bit, stretch.start, stretch.first)
                for piece in stretch.pieces:
                    piece.stale |= bit
                    if piece.stored is not None:
                        piece.stored |= bit

    def touch_from(self, bit: int, ids: Sequence[int], start: int) -> None:
        """The worker is expected to hold a prompt from this depth on, or no more. O(pieces)."""
        stretches, size = self._stretches, self.size
        if not stretches:
            return
        start -= start % size
        if start < len(ids):
            self._changes.note(self.paths.walk_number, bit, start, ids[start])
        for stretch in filter(None, map(stretches.get, ids[start::size])):
            for piece in stretch.pieces:
                piece.stale |= bit

    def touch_all(self, bit: int) -> None:
        """Whatever the worker held, it may not any more. O(pieces)."""
        self._changes.forget(self.paths.walk_number)
        for piece in self._pieces.values():
            piece.stale |= bit

    def clear(self) -> None:
        """Nothing is remembered any more."""
        self._pieces.clear()
        self._stretches.clear()
        self._stretch_of.clear()
        self.paths.clear()

    def check(self, tables: Tables, workers: int) -> None:
        """Assert that a piece is right about all it knows something of. O(blocks x workers)."""
        for last, piece in self._pieces.items():
            assert piece.ids[-1] == last
            assert piece in self._stretches[piece.ids[0]].pieces
            assert len(piece.ids) == self.size
            for block in piece.ids:
                assert self._stretch_of[block] is self._stretches[piece.ids[0]]
            piece.check(tables, workers)
        assert len(self._stretch_of) <= max(self._most, self.size)
        blocks = {block for piece in self._pieces.values() for block in piece.ids}
        assert blocks == self._stretch_of.keys()
        assert sum(len(stretch.pieces) for stretch in self._stretches.values()) == len(self._pieces)
        self.paths.check(self._pieces, workers)

    def _remember(self, ids: Sequence[int], start: int) -> Piece:
        walk = self.paths.walk_number
        piece = Piece(ids, start, walk, walk)
        first = ids[0]
        stretch = self._stretches.get(first)
        if stretch is not None and len(stretch.pieces) >= _MOST_SIBLINGS:
            self.paths.lose(walk)
            self._forget(first)
        while self._stretches and len(self._stretch_of) + len(ids) > self._most:
            self._forget_oldest()
        stretch = self._stretches.get(first)
        if stretch is None:
            stretch = self._stretches[first] = _Stretch(first, start, walk)
        stretch.pieces.append(piece)
        self._pieces[ids[-1]] = piece
        self._stretch_of.update(dict.fromkeys(ids, stretch))
        return piece

    def _forget_oldest(self) -> None:
        """One that was walked since its last turn stays for another."""
        first = next(iter(self._stretches))
        stretch = self._stretches[first]
        # A path that has not been seen since its last turn is seen again while there is time.
        self.paths.lose(stretch.seen)
        stretch.seen = self.paths.walk_number
        if any(piece.walked for piece in stretch.pieces):
            for piece in stretch.pieces:
                piece.walked = False
            self._stretches[first] = self._stretches.pop(first)
            return
        self._forget(first)

    def _forget(self, first: int) -> None:
        for piece in self._stretches.pop(first).pieces:
            del self._pieces[piece.ids[-1]]
            for block in piece.ids:
                self._stretch_of.pop(block, None)


def _along(tables: Tables, alive: int, ids: Sequence[int], size: int) -> FallOffs:
    """A walk along a short prompt, of less than two pieces."""
    found = tables.fall_offs(alive, ids[:size], 0)
    if len(ids) <= size or not found.left:
        return found
    rest = tables.fall_offs(found.left, ids[size:], size)
    return FallOffs([*found.falls, *rest.falls], rest.left, found.leaning | rest.leaning)
