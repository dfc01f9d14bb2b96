"""The cache's changes on their way from the engine to the gateways that watch."""

from collections.abc import AsyncIterator, Callable, Sequence

from radixgate.clock import Clock
from radixgate.proto.contract import KV_HEARTBEAT_S
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.kv_events import KvEvent
from radixgate.proto.kv_log import KvLog
from radixgate.proto.kv_wire import update_to_pb
from radixgate.worker.serving.changes import Changes, wait_for_change


class KvBroadcast:
    """Owns the log; the engine writes into it, any number of watchers read at their own pace.

    Nothing is queued for a watcher: one that is slow finds its next updates in the log's ring, or
    a snapshot once the ring has passed it by.
    """

    def __init__(self, new_epoch: Callable[[], int], clock: Clock, *, ring_updates: int) -> None:
        """`new_epoch` gives a number that no earlier life of this worker has used, and not 0."""
        self._new_epoch = new_epoch
        self._clock = clock
        self._log = KvLog(new_epoch(), ring_updates=ring_updates)
        self._changes = Changes()

    def record(self, events: Sequence[KvEvent]) -> None:
        """What one engine step has changed."""
        self._log.record(events)
        self._changes.notify()

    def clear(self) -> None:
        """The whole cache was dropped: a new epoch begins."""
        self._log.clear(self._new_epoch())
        self._changes.notify()

    async def follow(self, epoch: int, seq: int) -> AsyncIterator[pb.KvUpdate]:
        """Everything after that position, for ever, and a heartbeat each second."""
        beat_at_s = self._clock.now()
        while True:
            changed = self._changes.next()
            for update in self._log.since(epoch, seq):
                epoch, seq = update.epoch, update.seq
                yield update_to_pb(update)
            # Only to a watcher that has it all: to others the digest would look like a loss.
            has_all = (epoch, seq) == (self._log.epoch, self._log.seq)
            if has_all and self._clock.now() >= beat_at_s:
                beat_at_s = self._clock.now() + KV_HEARTBEAT_S
                yield update_to_pb(self._log.heartbeat())
            await wait_for_change(changed, beat_at_s - self._clock.now())
