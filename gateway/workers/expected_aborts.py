"""Orders to abort that a foreign worker is told, or soon will be: how what they mean ends from then
on is not its fault, until it refuses."""

from collections.abc import Callable, Collection
from typing import Protocol

from radixgate.gateway.attempt.abort_order import AbortOrder


class Meant(Protocol):
    """A request at the worker."""

    orders: int  # to end it, that the worker is told and has not refused

    def is_meant_by(self, order: AbortOrder) -> bool: ...


class ExpectedAborts:
    """Of one worker."""

    def __init__(self, running: Collection[Meant]) -> None:
        """`running`: those at it, whichever they are by then."""
        self._running = running
        self.standing: dict[int, tuple[AbortOrder, list[Meant]]] = {}
        self._given = 0

    def expect(self, order: AbortOrder) -> Callable[[bool], None]:
        """Each that it means has an order more, those too that begin while it stands: a worker that
        ends everything ends them as well. It stands until what is returned is called, with whether
        the worker took it; once. O(running)."""
        self._given += 1
        number, marked = self._given, list[Meant]()
        self.standing[number] = order, marked
        for one in self._running:
            _mark(one, order, marked)

        def over(taken: bool) -> None:
            del self.standing[number]
            for one in [] if taken else marked:
                one.orders -= 1

        return over

    def begun(self, one: Meant) -> None:
        """It is at the worker from now on. Needed only while something stands."""
        for order, marked in self.standing.values():
            _mark(one, order, marked)


def _mark(one: Meant, order: AbortOrder, marked: list[Meant]) -> None:
    if one.is_meant_by(order):
        one.orders += 1
        marked.append(one)
