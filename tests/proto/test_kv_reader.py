"""What a reader makes of updates that come whole, late, twice or not at all."""

from collections.abc import Mapping, Sequence

import pytest

from radixgate.proto.kv_events import KvEvent, Pending, Stored, Tier
from radixgate.proto.kv_log import KvLog
from radixgate.proto.kv_reader import Apply, Complete, KvReader, Reset, Resync, Verb
from radixgate.proto.kv_updates import Digest, KvHeartbeat, KvSnapshotPart, KvStep, KvUpdate

EMPTY: Mapping[Tier, Digest] = {}


def reader(digests: Mapping[Tier, Digest] = EMPTY) -> KvReader:
    return KvReader(lambda: digests)


def following(epoch: int = 7, seq: int = 0, digests: Mapping[Tier, Digest] = EMPTY) -> KvReader:
    """A reader that has taken an empty snapshot as of `seq`."""
    made = reader(digests)
    made.read(KvSnapshotPart(epoch, seq, True, True, (), ()))
    return made


def step(seq: int, epoch: int = 7) -> KvStep:
    return KvStep(epoch, seq, (Stored(seq, [seq + 1]),))


def cause_of(verbs: Sequence[Verb]) -> str:
    (verb,) = verbs
    assert isinstance(verb, Resync)
    return verb.cause


def test_a_snapshot_resets_applies_and_completes() -> None:
    stored, pending = Stored(1, [2]), Pending(3, 1, [2])
    first = KvSnapshotPart(7, 5, True, False, (stored,), ())
    last = KvSnapshotPart(7, 5, False, True, (), (pending,))
    fresh = reader()
    assert fresh.read(first) == (Reset(7), Apply(7, (stored,)))
    assert fresh.position == (0, 0)
    assert fresh.read(last) == (Apply(7, (pending,)), Complete(7))
    assert fresh.position == (7, 5)


def test_updates_are_applied_in_order_and_only_once() -> None:
    made = following()
    assert made.read(step(1)) == (Apply(7, step(1).events),)
    assert made.read(step(1)) == ()
    assert made.read(step(2)) == (Apply(7, step(2).events),)
    assert made.position == (7, 2)


def test_after_a_gap_it_asks_for_what_is_missing_and_reads_nothing_until_restarted() -> None:
    made = following()
    made.read(step(1))
    assert cause_of(made.read(step(3))) == "gap"
    assert made.read(step(4)) == ()
    assert made.restart() == (7, 1)
    assert made.read(step(2)) == (Apply(7, step(2).events),)


def test_a_heartbeat_tells_that_the_last_update_was_lost() -> None:
    made = following()
    assert cause_of(made.read(KvHeartbeat(7, 1, {}))) == "gap"
    assert made.restart() == (7, 0)


def test_a_heartbeat_older_than_the_position_says_nothing() -> None:
    made = following()
    made.read(step(1))
    assert made.read(KvHeartbeat(7, 0, {Tier.DEVICE: Digest(9, 9)})) == ()


@pytest.mark.parametrize(
    ("held", "reported", "agree"),
    [
        pytest.param({}, {}, True, id="both-empty"),
        pytest.param({Tier.DEVICE: Digest(0, 0)}, {}, True, id="zero-is-empty"),
        pytest.param({Tier.DEVICE: Digest(1, 2)}, {Tier.DEVICE: Digest(1, 2)}, True, id="equal"),
        pytest.param({Tier.DEVICE: Digest(1, 2)}, {Tier.DEVICE: Digest(1, 3)}, False, id="xor"),
        pytest.param({Tier.DEVICE: Digest(1, 2)}, {Tier.HOST: Digest(1, 2)}, False, id="tier"),
        pytest.param({Tier.DEVICE: Digest(1, 2)}, {}, False, id="we-hold-more"),
    ],
)
def test_digests_that_differ_lead_to_a_snapshot(
    held: Mapping[Tier, Digest], reported: Mapping[Tier, Digest], agree: bool
) -> None:
    made = following(digests=held)
    verbs = made.read(KvHeartbeat(7, 0, reported))
    if agree:
        assert verbs == ()
        return
    assert cause_of(verbs) == "digest"
    assert made.read(step(1)) == ()
    assert made.restart() == (0, 0)


@pytest.mark.parametrize(
    "update",
    [
        pytest.param(step(1, epoch=8), id="step"),
        pytest.param(step(1, epoch=6), id="late-step"),
        pytest.param(KvHeartbeat(8, 0, {}), id="heartbeat"),
    ],
)
def test_another_epoch_without_a_snapshot_cannot_be_followed(update: KvUpdate) -> None:
    made = following()
    assert cause_of(made.read(update)) == "epoch"
    assert made.position == (0, 0)


def test_another_epoch_with_a_snapshot_is_followed_at_once() -> None:
    made = following()
    verbs = made.read(KvSnapshotPart(8, 0, True, True, (), ()))
    assert verbs == (Reset(8), Apply(8, ()), Complete(8))


@pytest.mark.parametrize(
    "update",
    [
        pytest.param(step(6), id="step-inside"),
        pytest.param(KvHeartbeat(7, 5, {}), id="heartbeat-inside"),
        pytest.param(KvSnapshotPart(7, 6, False, True, (), ()), id="part-of-another"),
    ],
)
def test_a_broken_snapshot_is_begun_again(update: KvUpdate) -> None:
    fresh = reader()
    fresh.read(KvSnapshotPart(7, 5, True, False, (), ()))
    assert cause_of(fresh.read(update)) == "snapshot"
    assert fresh.restart() == (0, 0)


def test_a_stream_that_breaks_inside_a_snapshot_starts_it_again() -> None:
    fresh = reader()
    fresh.read(KvSnapshotPart(7, 5, True, False, (), ()))
    assert fresh.restart() == (0, 0)
    assert fresh.read(KvSnapshotPart(7, 5, True, True, (), ()))[-1] == Complete(7)


def test_log_and_reader_agree_on_positions() -> None:
    log = KvLog(7)
    made = reader()
    events: list[KvEvent] = [Stored(1, [2])]
    for update in log.since(*made.position):
        made.read(update)
    log.record(events)
    (update,) = log.since(*made.position)
    assert made.read(update) == (Apply(7, tuple(events)),)
