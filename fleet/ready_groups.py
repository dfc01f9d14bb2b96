"""The ready workers by the names that requests use, each worker counted in one place only."""

import random
from collections.abc import Callable, Mapping

from radixgate.clock import Clock
from radixgate.fleet.identity import WorkerIdentity, WorkerState
from radixgate.fleet.picked_workers import PickedWorkers, Ready
from radixgate.fleet.ready_workers import ReadyWorkers
from radixgate.fleet.worker_record import WorkerRecord


class ReadyGroups:
    """Workers of one model are one group, whose columns hold their counts. A name that all of a
    group serve, and nobody else, is that group's; those of any other (an adapter that some have
    loaded) are picked out of their groups, O(groups' workers) a request, in an order that stays.

    Each gateway sees the fleet in an order of its own: a policy that leans to the first of equals
    does not make all of them lean to the same worker.
    """

    def __init__(
        self, records: Mapping[str, WorkerRecord], clock: Clock, rng: random.Random
    ) -> None:
        self._records = records
        self._clock = clock
        self._rng = rng
        self._groups: dict[str, ReadyWorkers] = {}  # by their model; made when first asked for
        self.kept: dict[str, Ready] = {}  # by name, as far as asked for

    def made(self, name: str) -> Ready:
        """Of a name that is not `kept`; from now on it is, and whoever serves it has a group."""
        ready = self.kept[name] = self._found(name, self._group)
        return ready

    def looked_at(self, name: str) -> Ready:
        """As the next lease would have it; nothing is kept."""
        kept = self.kept.get(name)
        return self._found(name, self._group_looked_at) if kept is None else kept

    def changed(self, identity: WorkerIdentity) -> None:
        """It has come, gone, or is ready or called otherwise than before. O(names)."""
        self._groups.pop(identity.model, None)
        self.kept.clear()

    def heard(self, record: WorkerRecord, now: float) -> None:
        """It has a new report."""
        group = self._groups.get(record.identity.model)
        if group is not None:
            group.heard(record.identity.id, now)

    def check(self) -> None:
        """Assert that records count in their groups, and names lead to who serves them."""
        for group in self._groups.values():
            group.check()
        for name, ready in self.kept.items():
            ready.check()
            assert {*ready.ids} == {one.identity.id for one in self._serving(name)}, name
            for group in ready.groups:
                assert self._groups[group.records[0].identity.model] is group

    def _found(self, name: str, group_of: Callable[[str], ReadyWorkers]) -> Ready:
        """O(workers)."""
        serving = self._serving(name)
        models = dict.fromkeys(record.identity.model for record in serving)
        if len(models) == 1 and len(serving) == len(self._of(*models)):
            return group_of(*models)
        self._rng.shuffle(serving)
        return PickedWorkers(serving, [*map(group_of, models)])

    def _group(self, model: str) -> ReadyWorkers:
        """Made if need be, of at least one worker."""
        group = self._groups.get(model)
        if group is None:
            group = self._groups[model] = self._group_looked_at(model)
            group.take_charge()
        return group

    def _group_looked_at(self, model: str) -> ReadyWorkers:
        """One that is not there yet is not in charge."""
        group = self._groups.get(model)
        if group is not None:
            return group
        ready = self._of(model)
        self._rng.shuffle(ready)
        return ReadyWorkers(ready, self._clock.now())

    def _of(self, model: str) -> list[WorkerRecord]:
        return [
            record
            for record in self._records.values()
            if record.state is WorkerState.READY and record.identity.model == model
        ]

    def _serving(self, name: str) -> list[WorkerRecord]:
        return [
            record
            for record in self._records.values()
            if record.state is WorkerState.READY and record.identity.serves(name)
        ]
