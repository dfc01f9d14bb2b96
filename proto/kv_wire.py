"""KV updates to and from the messages of `worker.proto`."""

from array import array
from collections.abc import Iterable

from radixgate.errors import WorkerFailed
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.proto.kv_updates import Digest, KvHeartbeat, KvSnapshotPart, KvStep, KvUpdate


def update_to_pb(update: KvUpdate) -> pb.KvUpdate:
    """The message of an update; under 1 MB, as the log cuts them. O(block ids)."""
    message = pb.KvUpdate(epoch=update.epoch, seq=update.seq)
    match update:
        case KvStep():
            message.step.CopyFrom(pb.KvStep(events=map(_event_to_pb, update.events)))
        case KvSnapshotPart():
            message.snapshot.CopyFrom(_snapshot_to_pb(update))
        case KvHeartbeat():
            digests = (
                pb.KvDigest(tier=_tier_to_pb(tier), count=digest.count, xor=digest.xor)
                for tier, digest in update.digests.items()
            )
            message.heartbeat.CopyFrom(pb.KvHeartbeat(digests=digests))
    return message


def update_from_pb(message: pb.KvUpdate) -> KvUpdate:
    """The update of a message. Raises WorkerFailed if it has no kind or a tier we do not know."""
    match message.WhichOneof("kind"):
        case "step":
            events = tuple(map(_event_from_pb, message.step.events))
            return KvStep(message.epoch, message.seq, events)
        case "snapshot":
            part = message.snapshot
            return KvSnapshotPart(
                message.epoch,
                message.seq,
                first=part.first,
                last=part.last,
                stored=tuple(map(_stored_from_pb, part.stored)),
                pending=tuple(map(_pending_from_pb, part.pending)),
            )
        case "heartbeat":
            digests = {
                _tier_from_pb(digest.tier): Digest(digest.count, digest.xor)
                for digest in message.heartbeat.digests
            }
            return KvHeartbeat(message.epoch, message.seq, digests)
    raise WorkerFailed(f"KV update {message.seq} of epoch {message.epoch} has no content")


def _snapshot_to_pb(part: KvSnapshotPart) -> pb.KvSnapshotPart:
    return pb.KvSnapshotPart(
        first=part.first,
        last=part.last,
        stored=map(_stored_to_pb, part.stored),
        pending=map(_pending_to_pb, part.pending),
    )


def _event_to_pb(event: KvEvent) -> pb.KvEvent:
    match event:
        case Stored():
            return pb.KvEvent(stored=_stored_to_pb(event))
        case Removed():
            removed = pb.KvRemoved(ids=event.ids, tier=_tier_to_pb(event.tier))
            return pb.KvEvent(removed=removed)
        case Pending():
            return pb.KvEvent(pending=_pending_to_pb(event))
        case Settled():
            return pb.KvEvent(settled=pb.KvSettled(key=event.key))


def _event_from_pb(message: pb.KvEvent) -> KvEvent:
    match message.WhichOneof("kind"):
        case "stored":
            return _stored_from_pb(message.stored)
        case "removed":
            removed = message.removed
            return Removed(_ids(removed.ids), _tier_from_pb(removed.tier))
        case "pending":
            return _pending_from_pb(message.pending)
        case "settled":
            return Settled(message.settled.key)
    raise WorkerFailed("a KV event has no content: worker and gateway are of different versions")


def _stored_to_pb(event: Stored) -> pb.KvStored:
    return pb.KvStored(parent=event.parent, ids=event.ids, tier=_tier_to_pb(event.tier))


def _stored_from_pb(message: pb.KvStored) -> Stored:
    return Stored(message.parent, _ids(message.ids), _tier_from_pb(message.tier))


def _pending_to_pb(event: Pending) -> pb.KvPending:
    return pb.KvPending(key=event.key, parent=event.parent, ids=event.ids)


def _pending_from_pb(message: pb.KvPending) -> Pending:
    return Pending(message.key, message.parent, _ids(message.ids))


def _ids(ids: Iterable[int]) -> "array[int]":
    return array("Q", ids)


def _tier_to_pb(tier: Tier) -> str:
    return tier.name  # the stubs take an enum value only by its name


def _tier_from_pb(tier: int) -> Tier:
    try:
        return Tier(tier)
    except ValueError as exc:
        raise WorkerFailed(f"tier {tier} of a KV event is none of {list(Tier)}") from exc
