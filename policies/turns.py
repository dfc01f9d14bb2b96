"""Whose turn it is: the one that has waited longest, so that equals share evenly."""

import copy
import random
from collections.abc import Sequence
from itertools import compress, repeat, starmap
from operator import not_

# Ids of workers that left stay until there are so many; then the half that waited longest goes.
_MAX_IDS = 65_536


class Turns:
    """Remembers when each worker id had its last turn. New ids come first, in random order.

    Candidates often come in the same list as the time before: their turns are kept in a column.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._last: dict[str, int] = {}  # in order of the turns
        self._turn = 0
        self._ids: Sequence[str] = ()  # the candidates of the last question
        self._column: list[int] = []  # their turns; 0: none yet
        # Their indices, whose turn is longest ago first; None: nobody has asked for it again and
        # again, or one had none yet.
        self._order: dict[int, None] | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> "Turns":
        """O(ids), 10 ns each: nothing in it is ever changed in place, and the column made anew."""
        twin = Turns(copy.deepcopy(self._rng, memo))
        twin._last, twin._turn = self._last.copy(), self._turn
        return twin

    def next(self, ids: Sequence[str], among: Sequence[int]) -> int:
        """One of the rising indices `among`: whose turn is longest ago. O(among), O(1) where these
        are all as the time before; and O(ids) if it is another list of ids, which nobody changes.
        """
        another = ids is not self._ids
        if another:
            self._line_up(ids)
        column = self._column
        everyone = len(among) == len(column)
        if everyone and self._order is not None:
            return next(iter(self._order))
        turns = column if everyone else [column[index] for index in among]
        longest = min(turns)
        if longest:
            if everyone and not another:
                self._order = dict.fromkeys(sorted(among, key=turns.__getitem__))
            return among[turns.index(longest)]
        # Drawn anew each time: two gateways that start together do not take the same order.
        # In calls, not in a loop: at first a fleet of 256 draws so many each time.
        lots = list(starmap(self._rng.random, repeat((), len(turns))))
        highest = max(compress(lots, map(not_, turns)))
        place = lots.index(highest)
        while turns[place]:  # another's lot is as high
            place = lots.index(highest, place + 1)
        return among[place]

    def took(self, ids: Sequence[str], index: int) -> None:
        """The worker at this index had its turn now."""
        worker_id = ids[index]
        self._turn += 1
        self._last.pop(worker_id, None)
        self._last[worker_id] = self._turn
        if ids is self._ids:
            self._column[index] = self._turn
            if self._order is not None:
                del self._order[index]
                self._order[index] = None
        else:
            self._line_up(())
        if len(self._last) > _MAX_IDS:
            for old in list(self._last)[: _MAX_IDS // 2]:
                del self._last[old]
            self._line_up(())

    def _line_up(self, ids: Sequence[str]) -> None:
        self._ids, self._column = ids, list(map(self._last.get, ids, repeat(0)))
        self._order = None
