"""One worker's WatchKv stream, joined to the mirror."""

from collections import Counter
from collections.abc import Mapping

from radixgate.proto.kv_events import Tier
from radixgate.proto.kv_reader import Apply, Complete, KvReader, Reset, Resync
from radixgate.proto.kv_updates import Digest, KvHeartbeat, KvUpdate
from radixgate.radix_mirror.kept import KeptBlocks, Unproven
from radixgate.radix_mirror.mirror import RadixMirror


class KvFeed:
    """Applies a worker's updates to the mirror. Does no I/O: who owns the stream hands them in.

    Open each stream at `restart()`; when `take` returns a Resync, open a new one. A feed made
    before its worker was removed from the mirror has no effect any more.
    """

    def __init__(self, mirror: RadixMirror, worker_id: str, kept: KeptBlocks | None = None) -> None:
        """`kept`: of an earlier life of this gateway. The stream goes on from there, and the mirror
        gets it with the first heartbeat that confirms it; None: it begins with a snapshot."""
        self._mirror = mirror
        self._worker_id = worker_id
        self._incarnation = mirror.incarnation(worker_id)
        self._reader = KvReader(self._digests)
        self._unproven: Unproven | None = None  # None: what the mirror holds is all there is
        self.updates = 0
        self.resyncs: Counter[str] = Counter()  # by cause
        if kept is not None:
            self._unproven = Unproven(kept)
            self._reader.resume(kept.epoch, kept.seq)

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
                    # A snapshot: what was kept is of no more use.
                    self._unproven = None
                    self._mirror.reset(self._worker_id, verb.epoch)
                case Apply() if self._unproven is not None:
                    self._unproven.apply(verb.events)
                case Apply():
                    self._mirror.apply(self._worker_id, verb.epoch, verb.events)
                case Complete():
                    self._mirror.complete(self._worker_id, verb.epoch)
                case Resync():
                    self.resyncs[verb.cause] += 1
                    return verb
        if self._unproven is not None:
            self._prove(self._unproven, update)
        return None

    def kept(self) -> KeptBlocks | None:
        """What the worker stores as of the last update; None: that is not known for certain."""
        blocks = self._mirror.blocks_of(self._worker_id)
        epoch, seq = self._reader.position
        if not blocks.complete or blocks.epoch != epoch or self._unproven is not None:
            return None
        return KeptBlocks(self._worker_id, epoch, seq, self._mirror.stored_by(self._worker_id))

    def _digests(self) -> Mapping[Tier, Digest]:
        held = self._unproven
        return self._mirror.digests(self._worker_id) if held is None else held.digests()

    def _prove(self, unproven: Unproven, update: KvUpdate) -> None:
        """A heartbeat as of our position that asked for nothing agrees with what was kept."""
        position = self._reader.position
        match update:
            case KvHeartbeat() if (update.epoch, update.seq) == position:
                self._unproven = None
                self._mirror.reset(self._worker_id, update.epoch)
                self._mirror.apply(self._worker_id, update.epoch, unproven.events())
                self._mirror.complete(self._worker_id, update.epoch)
