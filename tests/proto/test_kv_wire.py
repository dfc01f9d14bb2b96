"""What is written is what is read."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from radixgate.errors import WorkerFailed
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.proto.kv_updates import Digest, KvHeartbeat, KvSnapshotPart, KvStep, KvUpdate
from radixgate.proto.kv_wire import update_from_pb, update_to_pb

# A busy machine makes drawing slow; that says nothing about the code.
SLOW = [HealthCheck.too_slow]

U64 = st.integers(0, 2**64 - 1)
IDS = st.lists(U64, max_size=5).map(tuple)
TIERS = st.sampled_from(Tier)
STORED = st.builds(Stored, U64, IDS, TIERS)
PENDING = st.builds(Pending, U64, U64, IDS)
EVENTS = st.one_of(STORED, st.builds(Removed, IDS, TIERS), PENDING, st.builds(Settled, U64))
UPDATES = st.one_of(
    st.builds(KvStep, U64, U64, st.lists(EVENTS, max_size=4).map(tuple)),
    st.builds(
        KvSnapshotPart,
        U64,
        U64,
        st.booleans(),
        st.booleans(),
        st.lists(STORED, max_size=3).map(tuple),
        st.lists(PENDING, max_size=3).map(tuple),
    ),
    st.builds(KvHeartbeat, U64, U64, st.dictionaries(TIERS, st.builds(Digest, U64, U64))),
)


def plain(event: KvEvent) -> KvEvent:
    """The event with its ids as a tuple, whatever sequence it came with."""
    match event:
        case Stored():
            return Stored(event.parent, tuple(event.ids), event.tier)
        case Removed():
            return Removed(tuple(event.ids), event.tier)
        case Pending():
            return Pending(event.key, event.parent, tuple(event.ids))
        case Settled():
            return event


@settings(deadline=None, suppress_health_check=SLOW)
@given(UPDATES)
def test_an_update_survives_the_wire(update: KvUpdate) -> None:
    message = pb.KvUpdate.FromString(update_to_pb(update).SerializeToString())
    read = update_from_pb(message)
    assert (read.epoch, read.seq) == (update.epoch, update.seq)
    match read, update:
        case KvStep(), KvStep():
            assert tuple(map(plain, read.events)) == update.events
        case KvSnapshotPart(), KvSnapshotPart():
            assert (read.first, read.last) == (update.first, update.last)
            assert tuple(map(plain, read.stored)) == update.stored
            assert tuple(map(plain, read.pending)) == update.pending
        case _:
            assert read == update


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(pb.KvUpdate(epoch=1, seq=1), id="no-kind"),
        pytest.param(pb.KvUpdate(step=pb.KvStep(events=[pb.KvEvent()])), id="empty-event"),
    ],
)
def test_a_message_without_content_is_an_error(message: pb.KvUpdate) -> None:
    with pytest.raises(WorkerFailed):
        update_from_pb(message)


def test_an_unknown_tier_is_an_error() -> None:
    tier_seven = b"\x1a\x06\x0a\x04\x0a\x02\x18\x07"  # step{events{stored{tier: 7}}}
    with pytest.raises(WorkerFailed, match="tier 7"):
        update_from_pb(pb.KvUpdate.FromString(tier_seven))
