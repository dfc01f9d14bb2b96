"""Whose turn it is: the one that has waited longest, so that equals share evenly."""

import copy
import random
from collections.abc import Sequence

# Ids of workers that left stay until there are so many; then the half that waited longest goes.
_MAX_IDS = 65_536


class Turns:
    """Remembers when each worker id had its last turn. New ids come first, in random order."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._last: dict[str, int] = {}  # in order of the turns
        self._turn = 0

    def __deepcopy__(self, memo: dict[int, object]) -> "Turns":
        """O(ids), 10 ns each: nothing in it is ever changed in place."""
        twin = Turns(copy.deepcopy(self._rng, memo))
        twin._last, twin._turn = self._last.copy(), self._turn
        return twin

    def next(self, ids: Sequence[str], among: Sequence[int]) -> int:
        """One of the indices `among`: the one whose turn is longest ago. O(among)."""
        last = self._last
        turns = [last.get(ids[index]) for index in among]
        known = [turn for turn in turns if turn is not None]
        if len(known) == len(turns):
            return among[known.index(min(known))]
        # Drawn anew each time: two gateways that start together do not take the same order.
        lots = [self._rng.random() for _ in turns]
        new = [place for place, turn in enumerate(turns) if turn is None]
        return among[max(new, key=lots.__getitem__)]

    def took(self, worker_id: str) -> None:
        """The worker had its turn now."""
        self._turn += 1
        self._last.pop(worker_id, None)
        self._last[worker_id] = self._turn
        if len(self._last) > _MAX_IDS:
            for old in list(self._last)[: _MAX_IDS // 2]:
                del self._last[old]
