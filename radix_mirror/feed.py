"""One worker's WatchKv stream, joined to the mirror."""

from collections import Counter

from radixgate.proto.kv_reader import Apply, Complete, KvReader, Reset, Resync
from radixgate.proto.kv_updates import KvUpdate
from radixgate.radix_mirror.mirror import RadixMirror


class KvFeed:
    """Applies a worker's updates to the mirror. Does no I/O: who owns the stream hands them in.

    Open each stream at `restart()`; when `take` returns a Resync, open a new one. A feed made
    before its worker was removed from the mirror has no effect any more.
    """

    def __init__(self, mirror: RadixMirror, worker_id: str) -> None:
        self._mirror = mirror
        self._worker_id = worker_id
        self._incarnation = mirror.incarnation(worker_id)
        self._reader = KvReader(lambda: mirror.digests(worker_id))
        self.updates = 0
        self.resyncs: Counter[str] = Counter()  # by cause

    def restart(self) -> tuple[int, int]:
        """(epoch, seq) to ask for on a stream that is about to be opened."""
        return self._reader.restart()

    def take(self, update: KvUpdate) -> Resync | None:
        """Apply one update. A Resync: this stream is of no more use, open another. O(block ids)."""
        if self._mirror.incarnation(self._worker_id) != self._incarnation:
            return None
        self.updates += 1
        for verb in self._reader.read(update):
            match verb:
                case Reset():
                    self._mirror.reset(self._worker_id, verb.epoch)
                case Apply():
                    self._mirror.apply(self._worker_id, verb.epoch, verb.events)
                case Complete():
                    self._mirror.complete(self._worker_id, verb.epoch)
                case Resync():
                    self.resyncs[verb.cause] += 1
                    return verb
        return None
