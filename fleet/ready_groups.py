"""The ready workers by the names that requests use, each worker counted in one place only."""

import random
from collections.abc import Mapping, Sequence

from radixgate.clock import Clock
from radixgate.fleet.identity import WorkerIdentity, WorkerState
from radixgate.fleet.ready_workers import ReadyWorkers
from radixgate.fleet.worker_record import WorkerRecord


class ReadyGroups:
    """Workers of one model are one group, whose columns hold their counts. A name that all of a
    group serve, and nobody else, is that group's; any other (an adapter that some have loaded) is
    made anew for each request, O(its workers), in an order that stays.

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
        self._mixed: dict[str, list[WorkerRecord]] = {}  # by name, of those that are no group's
        self.kept: dict[str, ReadyWorkers] = {}  # by name, of those that are a group's

    def made(self, name: str) -> ReadyWorkers:
        """Of a name that is not `kept`; from now on it is, if a group has it."""
        serving = self._mixed.get(name)
        if serving is None:
            serving = self._serving(name)
            if not self._is_group(serving):
                self._rng.shuffle(serving)
                self._mixed[name] = serving
        if not self._is_group(serving):
            return ReadyWorkers(serving, self._clock.now())
        model = serving[0].identity.model
        group = self._groups.get(model)
        if group is None:
            self._rng.shuffle(serving)
            group = self._groups[model] = ReadyWorkers(serving, self._clock.now())
            group.take_charge()
        self.kept[name] = group
        return group

    def looked_at(self, name: str) -> ReadyWorkers:
        """As the next lease would have it; nothing is kept."""
        kept = self.kept.get(name)
        if kept is not None:
            return kept
        serving = self._mixed.get(name)
        if serving is None:
            serving = self._serving(name)
            if self._is_group(serving) and serving[0].identity.model in self._groups:
                return self._groups[serving[0].identity.model]
            self._rng.shuffle(serving)
        return ReadyWorkers(serving, self._clock.now())

    def changed(self, identity: WorkerIdentity) -> None:
        """It has come, gone, or is ready or called otherwise than before. O(names)."""
        gone = self._groups.pop(identity.model, None)
        for name in [name for name, group in self.kept.items() if group is gone]:
            del self.kept[name]
        for name in identity.names:
            self.kept.pop(name, None)
        self._mixed.clear()

    def heard(self, record: WorkerRecord, now: float) -> None:
        """It has a new report."""
        group = self._groups.get(record.identity.model)
        if group is not None:
            group.heard(record.identity.id, now)

    def check(self) -> None:
        """Assert that records count in their groups, and names lead to who serves them."""
        for group in self._groups.values():
            group.check()
        for name, group in self.kept.items():
            assert {*group.ids} == {one.identity.id for one in self._serving(name)}, name

    def _serving(self, name: str) -> list[WorkerRecord]:
        return [
            record
            for record in self._records.values()
            if record.state is WorkerState.READY and record.identity.serves(name)
        ]

    def _is_group(self, serving: Sequence[WorkerRecord]) -> bool:
        models = {record.identity.model for record in serving}
        if len(models) != 1:
            return False
        (model,) = models
        ready = sum(
            record.state is WorkerState.READY and record.identity.model == model
            for record in self._records.values()
        )
        return ready == len(serving)
