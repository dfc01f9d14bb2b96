"""What a child has marked because an order to abort is about to go out, from it or another."""

from collections.abc import Callable, Collection

from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.workers.roster import Roster


class AbortMarks:
    """By the order's number, until its parent says that it has been given."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._over: dict[int, list[tuple[str, Callable[[bool], None]]]] = {}

    def expect(self, number: int, order: AbortOrder) -> None:
        """O(requests that run)."""
        self._over[number] = [
            (one.address.id, one.handle.expect_abort(order)) for one in self._roster.members()
        ]

    def over(self, number: int, taken: Collection[str]) -> None:
        """`taken`: the ids of workers that took it. Harmless for one that came after its start."""
        for worker_id, over in self._over.pop(number, ()):
            over(worker_id in taken)
