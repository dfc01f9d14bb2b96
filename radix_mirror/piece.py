"""Consecutive blocks of prompts: who holds all of them, and where the others fall off."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Protocol

from radixgate.radix_mirror.tables import Tables
from radixgate.radix_mirror.walk import CROWD, Depths, FallOffs, Lookup, enter

# Looks that are told apart.
_MOST_LOOKS = 8


class StoredBlocks(Protocol):
    """A table of who has stored which block."""

    @property
    def lookup(self) -> Lookup: ...

    def without(self, bit: int, ids: Sequence[int], /) -> Sequence[int]:
        """Those of `ids` that the worker has not stored, in order."""
        ...


@dataclass(slots=True, eq=False)
class Piece:
    """So many blocks as others, at a depth that is a multiple of their number.

    As an id names its whole prefix, everybody who comes through a piece has come the same way: it
    keeps depths as they are in the prompt.
    """

    ids: Sequence[int]
    start: int  # the depth of its first block
    known_from: int  # the walk from which on `looks` has all looks at it
    looked_at: int  # the walk of the last one
    through: int = 0  # the workers that hold all of it
    falls: dict[int, int] = field(default_factory=dict)  # place -> depth of those that fall in it
    crowds: list[tuple[int, int]] = field(default_factory=list)  # masks of such, and their depth
    fallen: int = 0  # the mask of both
    leaning: int = 0  # workers of which a block is held by another table than the first
    stale: int = -1  # the workers of which it knows nothing, or no more
    looks: list[tuple[int, int]] = field(default_factory=list)  # the last: walk, and at whom
    stored: int | None = None  # who may have stored a block of it; None: nobody has asked
    walked: bool = False  # since it was last to be forgotten
    was_last: bool = False  # of what a walk knew: another one may end here as well

    def stored_by(self, stored: Lookup) -> int:
        """Who may have stored a block of it: those who have, and those who had. O(1) mostly."""
        if self.stored is None:
            self.stored = 0
            for mask in map(stored, self.ids, repeat(0)):
                self.stored |= mask
        return self.stored

    def walk(self, depths: Depths, tables: Tables, alive: int, walk: int) -> int:
        """Which of the workers `alive`, who came to it in this walk, hold all of it; enters the
        depths of the others."""
        if stale := self.stale & alive:
            self.look(tables, stale, walk)
        self.walked = True
        through = self.through & alive
        if through != alive:
            self._enter_fallen(depths, alive ^ through)
        return through

    def look(self, tables: Tables, workers: int, walk: int) -> None:
        """Find anew what these workers hold of it. O(blocks until they fell)."""
        found = tables.fall_offs(workers, self.ids, self.start)
        if self._is_as_known(workers, found):
            self.stale &= ~workers
            return
        self._forget(workers)
        self.learn(workers, found)
        self.looked_at = walk
        self.looks.append((walk, workers))
        if len(self.looks) > _MOST_LOOKS:
            self.known_from = self.looks[_MOST_LOOKS // 2 - 1][0]
            del self.looks[: _MOST_LOOKS // 2]

    def looked_since(self, walk: int) -> int:
        """At whom it was looked after this walk; -1: it does not know. O(looks since)."""
        if walk < self.known_from:
            return -1
        workers = 0
        for when, looked in reversed(self.looks):
            if when <= walk:
                break
            workers |= looked
        return workers

    def learn(self, workers: int, found: FallOffs) -> None:
        """Of these workers, of which it knows nothing."""
        self.through |= found.left
        self.leaning |= found.leaning
        self.fallen |= workers ^ found.left
        self.stale &= ~workers
        for mask, depth in found.falls:
            if not depth or mask.bit_count() > CROWD:
                self.crowds.append((mask, depth))
            else:
                enter(self.falls, mask, depth)

    def _is_as_known(self, workers: int, found: FallOffs) -> bool:
        """Whether this is one worker, and was found where it was before: what it was sent it has
        not computed, for one. Then nobody who looked since has to look again."""
        is_one = not workers & (workers - 1)
        if not is_one or self.leaning & workers != found.leaning:
            return False
        if found.left:
            return self.through & workers != 0
        _, depth = found.falls[0]
        return self.falls.get(workers.bit_length() - 1) == depth

    def _enter_fallen(self, depths: Depths, fell: int) -> None:
        """The depths of these workers, none of which holds all of the piece."""
        if fell == self.fallen:
            for place, depth in self.falls.items():
                depths[place] = depth
        else:
            for place, depth in self.falls.items():
                if fell >> place & 1:
                    depths[place] = depth
        for mask, depth in self.crowds:
            if depth:
                enter(depths, mask & fell, depth)

    def depth_of(self, place: int) -> int:
        """Where the worker at this place falls, which it does. O(crowds)."""
        depth = self.falls.get(place)
        if depth is not None:
            return depth
        return next(depth for mask, depth in self.crowds if mask >> place & 1)

    def check(self, tables: Tables, workers: int) -> None:
        """Assert that it is right about all it knows something of. O(blocks x workers)."""
        assert not self.through & self.fallen
        fallen = 0
        for mask, _ in (*self.crowds, *((1 << at, 0) for at in self.falls)):
            assert mask
            assert not fallen & mask
            fallen |= mask
        assert fallen == self.fallen
        claimed = tables.claimed.masks()
        holders = known = (self.through | self.fallen) & ~self.stale & workers
        for block in self.ids:
            here = claimed.get(block, 0)
            for table in tables.lookups:
                here |= table(block, 0)
            holders &= here
        assert holders == self.through & known

    def _forget(self, workers: int) -> None:
        """What is known of these is void."""
        self.through &= ~workers
        self.leaning &= ~workers
        fallen = self.fallen & workers
        if not fallen:
            return
        self.fallen ^= fallen
        while fallen and self.falls:
            place = fallen.bit_length() - 1
            self.falls.pop(place, None)
            fallen ^= 1 << place
        if self.crowds:
            kept = [(mask & ~workers, depth) for mask, depth in self.crowds]
            self.crowds = [(mask, depth) for mask, depth in kept if mask]
