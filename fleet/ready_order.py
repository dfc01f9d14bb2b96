"""Ready workers in an order that stays, and what else of them does."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Protocol, TypeVar

from radixgate.fleet.worker_record import SharedMirror, WorkerRecord

Value = TypeVar("Value")


class Picker(Protocol):
    """Takes of a column what stands at certain places, in their order."""

    def __call__(self, column: Sequence[Value], /) -> Sequence[Value]: ...


class ReadyOrder:
    """Made anew when a worker becomes ready or is so no longer."""

    def __init__(self, records: Sequence[WorkerRecord]) -> None:
        self.records = records
        self.ids = [record.identity.id for record in records]
        self.capacities = [record.identity.capacity_tokens for record in records]
        self.nothing: Sequence[int] = (0,) * len(records)  # of a prompt that nobody has cached
        mirrors = {id(record.shared): record.shared for record in records}
        self.mirrors: Sequence[SharedMirror] = tuple(mirrors.values())
        # From the column of the mirror that all have, if there is one.
        self._from_mirror: Picker = tuple
        self._generation = -1

    def __len__(self) -> int:
        return len(self.records)

    def picked(self, column: Sequence[Value], /) -> Sequence[Value]:
        """Of a column of the mirror that all share, each worker's part. O(workers), 8 ns each."""
        mirror = self.mirrors[0].mirror
        if self._generation != mirror.generation:
            self._from_mirror = picker([mirror.place(worker_id) for worker_id in self.ids])
            self._generation = mirror.generation
        return self._from_mirror(column)


def picker(places: Sequence[int]) -> Picker:
    """Takes what stands at these places."""
    if not places:
        return itemgetter(slice(0))
    if len(places) == 1:
        return itemgetter(slice(places[0], places[0] + 1))
    return itemgetter(*places)
