"""Where earlier walks along the same pieces left the workers: a column of depths, kept right."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from radixgate.radix_mirror.budget import DEPTH_BYTES, PATH_BYTES
from radixgate.radix_mirror.piece import Piece
from radixgate.radix_mirror.tables import Tables
from radixgate.radix_mirror.walk import Depths

# 1,285 paths of 256 workers.
MOST_BYTES = 3 * 1024**2
# If more workers than so many are to be looked at again, the whole path is walked.
FEW = 8


@dataclass(slots=True)
class Path:
    """What the last walk found that came to the end of these pieces."""

    end: int  # so many blocks
    workers: int  # the mask of those that were asked for
    walk: int  # its number
    depths: Depths  # of those that fell; who came through has none yet
    through: int
    leaning: int
    seen: int = -1  # the last walk that came to each of its pieces; -1: none yet

    @property
    def bytes(self) -> int:
        return PATH_BYTES + DEPTH_BYTES * len(self.depths)

    def came_to(self, bit: int, depth: int) -> bool:
        """Whether the worker is on it, and came so far."""
        if self.through & bit:
            return True
        return self.workers & bit != 0 and self.depths[bit.bit_length() - 1] >= depth


class Paths:
    """By last block, which names all before it. What was not walked for longest is forgotten first.

    A path is kept from the second walk on that ends there: of the turns of a conversation each ends
    somewhere else.

    What has changed since stands in the pieces: a worker that is stale in one to which it came, or
    was until another walk looked, is looked for again, and nobody else.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._paths: dict[int, Path] = {}
        self.bytes = 0  # of all of them
        self.walk_number = 0  # of the walk that is under way, or was last
        self._lost = -1  # pieces may have left since that paths saw no later than this walk

    def begin(self) -> None:
        """Another walk."""
        self.walk_number += 1

    def lose(self, seen: int) -> None:
        """A piece is about to leave that no path has seen after this walk."""
        self._lost = max(self._lost, seen)

    def whole(self, last: int, workers: int) -> Path | None:
        """The path of these workers to this block, if none of its pieces can have left. O(1)."""
        path = self._paths.get(last)
        return path if path and path.workers == workers and path.seen > self._lost else None

    def walk(self, pieces: Sequence[Piece], depths: Depths, tables: Tables, workers: int) -> Path:
        """The path along these pieces, with which a prompt begins; enters the depths.

        O(pieces) where little has changed since the last time.
        """
        last = pieces[-1].ids[-1]
        path = self._paths.get(last)
        if path is None or path.workers != workers:
            return self._walk_anew(pieces, depths, tables, workers)
        changed, alive = 0, workers
        for piece in pieces:
            piece.walked = True
            changed |= piece.stale & alive
            if piece.looked_at > path.walk:
                changed |= piece.looked_since(path.walk) & alive
            alive &= piece.through
        if changed.bit_count() > FEW:
            return self._walk_anew(pieces, depths, tables, workers)
        while changed:
            place = changed.bit_length() - 1
            changed ^= 1 << place
            self.look_for(place, path, pieces, tables)
        path.seen = self.walk_number
        self.went(path, last, depths)
        return path

    def look_for(self, place: int, path: Path, pieces: Iterable[Piece], tables: Tables) -> None:
        """One worker may have another depth than it had, which is in these pieces or behind them;
        it leans on nothing before. O(pieces to which it comes)."""
        bit = 1 << place
        path.through &= ~bit
        path.leaning &= ~bit
        path.depths[place] = 0
        for piece in pieces:
            if piece.stale & bit:
                piece.look(tables, bit, self.walk_number)
            path.leaning |= piece.leaning & bit
            if not piece.through & bit:
                path.depths[place] = piece.depth_of(place)
                return
        path.through |= bit

    def went(self, path: Path, last: int, depths: Depths) -> None:
        """This walk took the path to this block; enters the depths."""
        path.walk = self.walk_number
        del self._paths[last]
        self._paths[last] = path  # the last to be forgotten
        depths[:] = path.depths

    def check(self, known: Mapping[int, Piece], workers: int) -> None:
        """Assert that they are counted right, and agree with the pieces at whose end they are, of
        those `known`, about all who have not changed there. O(paths x workers)."""
        assert self.bytes == sum(path.bytes for path in self._paths.values())
        assert self.bytes <= self._most or len(self._paths) == 1
        for last, path in self._paths.items():
            assert path.walk <= self.walk_number
            assert not (path.through | path.leaning) & ~path.workers
            assert all(not depth for at, depth in enumerate(path.depths) if path.through >> at & 1)
            piece = known.get(last)
            if piece is None or path.workers != workers:
                continue
            same = path.workers & ~(piece.stale | piece.looked_since(path.walk))
            assert not path.through & same & ~piece.through
            for place, depth in enumerate(path.depths):
                if same >> place & 1 and not path.through >> place & 1 and depth >= piece.start:
                    assert depth == piece.depth_of(place)

    def clear(self) -> None:
        """Nothing is remembered any more."""
        self._paths.clear()
        self.bytes = 0

    def _walk_anew(
        self, pieces: Sequence[Piece], depths: Depths, tables: Tables, workers: int
    ) -> Path:
        alive, leaning = workers, 0
        for piece in pieces:
            through = piece.walk(depths, tables, alive, self.walk_number)
            leaning |= piece.leaning & alive
            alive = through
            if not alive:
                break
        # The depths are the caller's, who changes them: a path that is kept has a list of its own.
        last = pieces[-1]
        end = last.start + len(last.ids)
        path = Path(end, workers, self.walk_number, depths, alive, leaning)
        if last.was_last:
            path.depths = depths[:]
            self._keep(last.ids[-1], path)
        last.was_last = True
        return path

    def _keep(self, last: int, path: Path) -> None:
        known = self._paths.pop(last, None)
        if known is not None:
            self.bytes -= known.bytes
        self._paths[last] = path
        self.bytes += path.bytes
        while self.bytes > self._most and len(self._paths) > 1:
            self.bytes -= self._paths.pop(next(iter(self._paths))).bytes
