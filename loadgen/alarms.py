"""Who waits for which time: all wake when it has come, in the order in which they are due."""

import asyncio
import heapq
from itertools import count

from radixgate.clock import Clock


class Alarms:
    """One timer for all sleepers, so that those who are due at once wake in the order they came.

    Holds a sleeper for each task that waits, whose number is the caller's bound.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []  # a heap
        self._timer: asyncio.TimerHandle | None = None

    async def until(self, due_s: float) -> None:
        """Sleep until the clock says `due_s`; at once if that is past and none sleeps for it."""
        if due_s <= self._clock.now() and (not self._sleepers or due_s < self._sleepers[0][0]):
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (due_s, next(self._order), woken))
        if self._sleepers[0][2] is woken:
            self._set()
        await woken

    def _set(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait_s = max(0.0, self._sleepers[0][0] - self._clock.now())
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def _ring(self) -> None:
        # The loop's timer counts whole milliseconds and may ring a part of one too soon.
        self._timer = None
        now = self._clock.now()
        while self._sleepers and self._sleepers[0][0] <= now:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():  # done: its task was cancelled
                woken.set_result(None)
        if self._sleepers:
            self._set()
