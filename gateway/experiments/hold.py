"""Requests that wait while a fleet drains before a switch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from radixgate.clock import Clock

# Who finds no room in a hold is sent on at once, by the policy that is being left: users come
# before the experiment, whose line of that request is marked.
MOST_HELD = 10_000
MOST_HELD_BYTES = 256 * 1024 * 1024
# So many are let go at a time, so that thousands do not stop the event loop.
_AT_A_TIME = 64


class Waiter(Protocol):
    """A request that can wait for its dispatch."""

    @property
    def size(self) -> int:
        """Bytes that it keeps while it waits."""
        ...

    def go(self, waited_s: float) -> None:
        """It waits no more."""
        ...


@dataclass(frozen=True, slots=True)
class Held:
    """What a hold has cost."""

    requests: int = 0
    seconds: float = 0.0  # summed over them


class Hold:
    """Closed, who comes waits; opened, they go in the order they came.

    Bounded by MOST_HELD requests and MOST_HELD_BYTES; for how long it stays closed is its owner's.
    """

    def __init__(self, clock: Clock, soon: Callable[[Callable[[], None]], object]) -> None:
        """`soon` calls back once other work has had its turn."""
        self._clock = clock
        self._soon = soon
        self._waiting: dict[Waiter, float] = {}  # since when, in order
        self._bytes = 0
        self._held = 0
        self._seconds = 0.0
        self.closed = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        self.closed = True

    def take(self, waiter: Waiter) -> bool:
        """False: it must not wait, or there is no room."""
        if not self.closed and not self._waiting:
            return False
        if len(self._waiting) >= MOST_HELD or self._bytes + waiter.size > MOST_HELD_BYTES:
            return False
        self._waiting[waiter] = self._clock.now()
        self._bytes += waiter.size
        return True

    def leave(self, waiter: Waiter) -> bool:
        """Its client is gone; False: it did not wait."""
        return self._out(waiter) is not None

    def open(self) -> None:
        """Let them go."""
        self.closed = False
        self._release()

    def cost(self) -> Held:
        """Of the hold so far, or of the last one; then counting begins anew."""
        now = self._clock.now()
        waited = sum(now - since for since in self._waiting.values())
        cost = Held(self._held + len(self._waiting), self._seconds + waited)
        # Those that still wait are in it already: when they leave they add what is new.
        self._held, self._seconds = -len(self._waiting), -waited
        return cost

    def _release(self) -> None:
        if self.closed:
            return
        now = self._clock.now()
        for waiter in list(self._waiting)[:_AT_A_TIME]:
            since = self._out(waiter)
            assert since is not None
            waiter.go(now - since)
        if self._waiting:
            self._soon(self._release)

    def _out(self, waiter: Waiter) -> float | None:
        since = self._waiting.pop(waiter, None)
        if since is not None:
            self._bytes -= waiter.size
            self._held += 1
            self._seconds += self._clock.now() - since
        return since
