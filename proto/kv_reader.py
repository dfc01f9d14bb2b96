"""The gateway's side of WatchKv: what each update means for the mirror, and when to ask again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from radixgate.proto.kv_events import KvEvent, Tier
from radixgate.proto.kv_updates import Digest, KvHeartbeat, KvSnapshotPart, KvStep, KvUpdate


@dataclass(frozen=True, slots=True)
class Reset:
    """Forget what the worker reported; what follows is of `epoch`."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Apply:
    """These events happened, in order."""

    epoch: int
    events: tuple[KvEvent, ...]


@dataclass(frozen=True, slots=True)
class Complete:
    """The snapshot has ended: the mirror now holds all that the worker stores."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Resync:
    """The stream cannot be followed: open it anew at the reader's position."""

    cause: Literal["gap", "epoch", "digest", "snapshot"]
    message: str


Verb = Reset | Apply | Complete | Resync


class KvReader:
    """Follows one worker's updates. Each call's verbs are obeyed before the next update is read.

    `digests` tells what the mirror holds of this worker; a heartbeat that says otherwise ends in
    a snapshot. A lost update costs only itself, if the worker's ring still has it.
    """

    def __init__(self, digests: Callable[[], Mapping[Tier, Digest]]) -> None:
        self._digests = digests
        self._epoch = 0
        self._seq = 0
        self._in_snapshot = False
        self._lost = False

    @property
    def position(self) -> tuple[int, int]:
        """Epoch and number to open a stream at; (0, 0) asks for a snapshot."""
        return (0, 0) if self._in_snapshot else (self._epoch, self._seq)

    def resume(self, epoch: int, seq: int) -> None:
        """`digests` holds all as of this position, as far as is known: read on from there."""
        self._epoch, self._seq, self._in_snapshot = epoch, seq, False

    def restart(self) -> tuple[int, int]:
        """A new stream is about to be opened: returns the position to ask for."""
        epoch, seq = self.position
        if epoch == 0:
            self._forget()
        self._lost = False
        return epoch, seq

    def read(self, update: KvUpdate) -> tuple[Verb, ...]:
        """What the update means; nothing once a Resync was returned, until `restart`."""
        if self._lost:
            return ()
        match update:
            case KvSnapshotPart():
                return self._read_snapshot(update)
            case KvStep():
                return self._read_step(update)
            case KvHeartbeat():
                return self._read_heartbeat(update)

    def _read_snapshot(self, part: KvSnapshotPart) -> tuple[Verb, ...]:
        verbs: tuple[Verb, ...] = ()
        if part.first:
            self._epoch, self._seq, self._in_snapshot = part.epoch, part.seq, True
            verbs = (Reset(part.epoch),)
        elif not self._in_snapshot or (part.epoch, part.seq) != (self._epoch, self._seq):
            return self._ask_for_snapshot("snapshot", "a part came without the ones before it")
        verbs += (Apply(part.epoch, (*part.stored, *part.pending)),)
        if part.last:
            self._in_snapshot = False
            verbs += (Complete(part.epoch),)
        return verbs

    def _read_step(self, step: KvStep) -> tuple[Verb, ...]:
        if self._in_snapshot:
            return self._ask_for_snapshot("snapshot", f"update {step.seq} came before its end")
        if step.epoch != self._epoch:
            return self._other_epoch(step.epoch)
        if step.seq <= self._seq:
            return ()
        if step.seq != self._seq + 1:
            return self._gap(step.seq - 1)
        self._seq = step.seq
        return (Apply(step.epoch, step.events),)

    def _read_heartbeat(self, beat: KvHeartbeat) -> tuple[Verb, ...]:
        if self._in_snapshot:
            return self._ask_for_snapshot("snapshot", "a heartbeat came before its end")
        if beat.epoch != self._epoch:
            return self._other_epoch(beat.epoch)
        if beat.seq > self._seq:
            return self._gap(beat.seq)
        if beat.seq < self._seq:
            return ()
        held = {tier: digest for tier, digest in self._digests().items() if digest.count}
        if held == beat.digests:
            return ()
        return self._ask_for_snapshot(
            "digest", f"as of update {beat.seq} the worker holds {beat.digests}, the mirror {held}"
        )

    def _gap(self, last: int) -> tuple[Verb, ...]:
        self._lost = True
        return (Resync("gap", f"updates {self._seq + 1} to {last} are missing"),)

    def _other_epoch(self, epoch: int) -> tuple[Verb, ...]:
        return self._ask_for_snapshot(
            "epoch", f"an update of epoch {epoch} came where {self._epoch} was followed"
        )

    def _ask_for_snapshot(
        self, cause: Literal["epoch", "digest", "snapshot"], message: str
    ) -> tuple[Verb, ...]:
        self._forget()
        self._lost = True
        return (Resync(cause, message),)

    def _forget(self) -> None:
        self._epoch = self._seq = 0
        self._in_snapshot = False
