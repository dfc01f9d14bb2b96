"""What one step has to say, gathered by receiver, and handed over in one piece."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from radixgate.errors import RadixgateError
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.kv_events import KvEvent


class Sink(Protocol):
    """Who takes the outputs of the requests it submitted: a gateway's stream, an HTTP request."""

    def deliver(self, batch: pb.StepBatch) -> None:
        """Called on the loop's thread, once a step, if there is something for this sink."""
        ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """All that a step changed for the world outside the engine."""

    batches: Sequence[tuple[Sink, pb.StepBatch]]
    ended: Sequence[tuple[Sink, int]]  # handles that will hear nothing more
    kv_events: Sequence[KvEvent]
    cleared: bool  # before `kv_events`, the whole cache was dropped


class StepOutbox:
    """Fills up during a step; `take` empties it. Bounded by the rows of a step and its commands."""

    def __init__(self) -> None:
        self._step = 0
        self._batches: dict[Sink, pb.StepBatch] = {}
        self._ended: list[tuple[Sink, int]] = []

    def item(self, sink: Sink) -> pb.Item:
        """A new item for the sink, to be filled in by the caller."""
        return self._batch(sink).items.add()

    def refuse(self, sink: Sink, handle: int, error: RadixgateError) -> None:
        """Answer a Submit with an error."""
        refused = pb.Refused(handle=handle, status=error.status, message=error.message)
        if error.param is not None:
            refused.field = error.param
        self._batch(sink).refused.append(refused)

    def end(self, sink: Sink, handle: int) -> None:
        """The handle hears nothing more."""
        self._ended.append((sink, handle))

    def forget(self, sink: Sink) -> None:
        """The sink has left: what was gathered for it goes nowhere."""
        self._batches.pop(sink, None)

    def take(self, kv_events: Sequence[KvEvent], *, cleared: bool = False) -> Delivery | None:
        """Everything since the last call; None if there is nothing."""
        if not (self._batches or self._ended or kv_events or cleared):
            return None
        self._step += 1
        for batch in self._batches.values():
            batch.step = self._step
        delivery = Delivery(list(self._batches.items()), self._ended, kv_events, cleared)
        self._batches, self._ended = {}, []
        return delivery

    def _batch(self, sink: Sink) -> pb.StepBatch:
        batch = self._batches.get(sink)
        if batch is None:
            batch = self._batches[sink] = pb.StepBatch()
        return batch
