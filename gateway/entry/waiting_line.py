"""How many requests run at once, and who waits for a place: by priority, then by arrival."""

import asyncio
import heapq
import sys
from itertools import count
from typing import Protocol

from radixgate.errors import TooManyRequests
from radixgate.gateway.settings.limits_config import LimitsConfig

_RETRY_AFTER_S = 1.0
# Of those that gave up waiting, so many may still lie in the heap before it is made anew.
_MOST_GONE = 64


class Entrant(Protocol):
    """Who wants a place."""

    @property
    def priority(self) -> int:
        """The higher, the sooner."""
        ...

    def admitted(self) -> None:
        """A place has become free and is this one's; not called within `join`."""
        ...


class WaitingLine:
    """A place is held from `enter` or `admitted` to `leave`. The line is bounded by `queue_size`:
    who comes when it is full is refused, whatever its priority. Who waits leaves it by `give_up`;
    the owner sees to deadlines."""

    def __init__(self, limits: LimitsConfig) -> None:
        self._most = _most_running(limits)
        self._most_waiting = limits.queue_size
        self._shrunk_at = 0  # running when the bound was last lowered
        self._numbers = count()
        self._heap: list[tuple[int, int, Entrant]] = []
        self._waiting: dict[Entrant, None] = {}  # what is in the heap and not here, has left
        self.running = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def enter(self) -> bool:
        """True: a place is the caller's now. False: one has to be waited for."""
        if self.running >= self._most or self._waiting:
            return False
        self.running += 1
        return True

    def check_room(self) -> None:
        """Raises TooManyRequests if there is no room to wait."""
        if len(self._waiting) >= self._most_waiting:
            raise TooManyRequests(
                f"{self.running} requests are under way (--max-concurrent-requests {self._most})"
                f" and {len(self._waiting)} wait (--queue-size {self._most_waiting})",
                retry_after_s=_RETRY_AFTER_S,
            )

    def join(self, entrant: Entrant) -> None:
        """Wait for a place. Raises TooManyRequests."""
        self.check_room()
        self._waiting[entrant] = None
        heapq.heappush(self._heap, (-entrant.priority, next(self._numbers), entrant))

    def give_up(self, entrant: Entrant) -> None:
        """By who waits."""
        del self._waiting[entrant]
        if len(self._heap) > 2 * len(self._waiting) + _MOST_GONE:
            self._heap = [entry for entry in self._heap if entry[2] in self._waiting]
            heapq.heapify(self._heap)

    def leave(self) -> None:
        """Once, by who has a place."""
        self.running -= 1
        if self._waiting:
            # Not from here: requests that end at once would nest as deep as the line is long.
            asyncio.get_running_loop().call_soon(self.admit)

    def admit(self) -> None:
        """Give free places to those that wait."""
        while self.running < self._most and self._waiting:
            entrant = heapq.heappop(self._heap)[2]
            if entrant in self._waiting:
                del self._waiting[entrant]
                self.running += 1
                entrant.admitted()

    def resize(self, limits: LimitsConfig) -> None:
        """Other bounds hold from now on. Who is beyond them already stays."""
        self._most = _most_running(limits)
        self._most_waiting = limits.queue_size
        self._shrunk_at = self.running + len(self._waiting)
        self.admit()

    def check(self) -> None:
        """Assert that the counts are possible. O(waiting)."""
        assert 0 <= self.running <= max(self._most, self._shrunk_at)
        assert len(self._waiting) <= max(self._most_waiting, self._shrunk_at)
        assert {entry[2] for entry in self._heap} >= self._waiting.keys()
        assert len(self._heap) <= 2 * len(self._waiting) + _MOST_GONE + 1


def _most_running(limits: LimitsConfig) -> int:
    return limits.max_concurrent_requests if limits.bounds_concurrency else sys.maxsize
