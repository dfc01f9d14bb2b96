"""Virtual time: what happens next, and a clock that stands where it happens."""

import heapq
from collections.abc import Callable


class Timeline:
    """A clock and the events still to come. Events of the same time happen in order of entry."""

    def __init__(self) -> None:
        self._now = 0.0
        self._serial = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def now(self) -> float:
        """Seconds since the start of the simulation."""
        return self._now

    def __len__(self) -> int:
        return len(self._events)

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Let `act` happen then; what should have happened already happens now. O(log events)."""
        self._serial += 1
        heapq.heappush(self._events, (max(when, self._now), self._serial, act))

    def after(self, delay_s: float, act: Callable[[], None]) -> None:
        """Let `act` happen in so many seconds; without a delay it happens at once."""
        if delay_s > 0.0:
            self.at(self._now + delay_s, act)
        else:
            act()

    def run(self) -> None:
        """Until nothing is left to happen."""
        while self._events:
            self._now, _, act = heapq.heappop(self._events)
            act()
