"""Ready workers whose columns are picked out of those of the groups that they count in."""

from collections.abc import Sequence
from itertools import chain
from operator import is_not

from radixgate.fleet.ready_order import ReadyOrder, Value, picker
from radixgate.fleet.ready_workers import ReadyWorkers, Told
from radixgate.fleet.worker_record import InFlight, WorkerRecord
from radixgate.policies.kv_share import fullest


class PickedWorkers(ReadyOrder):
    """Some of a group, or of several. Right as long as these groups are."""

    def __init__(self, records: Sequence[WorkerRecord], groups: Sequence[ReadyWorkers]) -> None:
        """Each of the records stands in one of the groups. O(workers of the groups)."""
        super().__init__(records)
        self.groups = groups
        everyone = chain.from_iterable(group.ids for group in groups)
        places = {worker_id: place for place, worker_id in enumerate(everyone)}
        self._pick = picker([places[worker_id] for worker_id in self.ids])
        self._whole: Sequence[Told] = ()  # of the groups, those that were picked from last
        self._told: Told | None = None

    def told(self, now: float) -> Told:
        """As that of a group. O(1) where nobody in the groups has reported since it was asked for
        last; else O(their workers), about 100 ns each."""
        whole = [group.told(now) for group in self.groups]
        if self._told is None or any(map(is_not, whole, self._whole)):
            self._whole, self._told = whole, self._picked_from(whole)
        return self._told

    @property
    def in_flight(self) -> InFlight:
        """As it is now. O(workers), about 80 ns each."""
        counts = [group.in_flight for group in self.groups]
        picked = InFlight([*self._column([of.requests for of in counts])])
        picked.uncached[:] = self._column([of.uncached for of in counts])
        picked.told[:] = self._column([of.told for of in counts])
        picked.there[:] = self._column([of.there for of in counts])
        return picked

    def check(self) -> None:
        """Assert that each is picked from its place in its group. O(workers)."""
        everyone = [*chain.from_iterable(group.records for group in self.groups)]
        assert [*self._pick(everyone)] == [*self.records]
        self.in_flight.check()

    def _picked_from(self, whole: Sequence[Told]) -> Told:
        elsewhere = self._column([of.queued_elsewhere for of in whole])
        kv_share = self._column([of.kv_share for of in whole])
        return Told(
            running=self._column([of.running for of in whole]),
            waiting=self._column([of.waiting for of in whole]),
            queued=self._column([of.queued for of in whole]),
            queued_elsewhere=elsewhere,
            kv_share=kv_share,
            requests=self._column([of.requests for of in whole]),
            speeds=self._column([of.speeds for of in whole]),
            sent_elsewhere=any(elsewhere),
            most_kv=fullest(kv_share) if None not in kv_share else None,
        )

    def _column(self, whole: Sequence[Sequence[Value]]) -> Sequence[Value]:
        """Of a column of each group, the part of ours."""
        if len(whole) == 1:
            return self._pick(whole[0])
        return self._pick([*chain.from_iterable(whole)])


# Who may take a request: a group, or who is picked out of some.
Ready = ReadyWorkers | PickedWorkers
