"""The ring, its snapshots and digests."""

import pytest

from radixgate.proto import kv_wire
from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.proto.kv_log import KvLog
from radixgate.proto.kv_updates import Digest, KvSnapshotPart, KvStep, KvUpdate

MEGABYTE = 1_000_000


def snapshot_of(log: KvLog) -> list[KvSnapshotPart]:
    parts = [part for part in log.since(0, 0) if isinstance(part, KvSnapshotPart)]
    assert parts[0].first
    assert parts[-1].last
    return parts


def stored_in(parts: list[KvSnapshotPart]) -> list[Stored]:
    return [run for part in parts for run in part.stored]


def test_one_step_is_one_numbered_update() -> None:
    log = KvLog(7)
    log.record([Stored(1, [2, 3]), Removed([3])])
    log.record([])
    log.record([Stored(2, [4])])
    assert [(update.epoch, update.seq) for update in log.since(7, 0)] == [(7, 1), (7, 2)]
    log.check()


def test_a_reader_inside_the_ring_gets_the_rest() -> None:
    log = KvLog(7)
    steps: list[list[KvEvent]] = [[Stored(n, [n + 1])] for n in range(1, 6)]
    for step in steps:
        log.record(step)
    assert log.since(7, 3) == [KvStep(7, 4, tuple(steps[3])), KvStep(7, 5, tuple(steps[4]))]
    assert log.since(7, 5) == []


@pytest.mark.parametrize(
    ("epoch", "seq"),
    [
        pytest.param(0, 0, id="holds-nothing"),
        pytest.param(6, 4, id="other-epoch"),
        pytest.param(7, 1, id="fell-out-of-the-ring"),
        pytest.param(7, 6, id="ahead-of-the-log"),
    ],
)
def test_a_reader_elsewhere_gets_a_snapshot(epoch: int, seq: int) -> None:
    log = KvLog(7, ring_updates=3)
    for n in range(1, 6):
        log.record([Stored(n, [n + 1])])
    (part,) = log.since(epoch, seq)
    assert part == KvSnapshotPart(7, 5, True, True, (Stored(1, [2, 3, 4, 5, 6]),), ())


def test_the_ring_is_bounded_in_words_too() -> None:
    log = KvLog(7, ring_words=40)
    log.record([Stored(0, range(1, 31))])
    log.record([Stored(30, range(31, 61))])
    assert [update.seq for update in log.since(7, 1)] == [2]
    assert isinstance(log.since(7, 0)[0], KvSnapshotPart)
    log.check()


def test_a_new_epoch_starts_empty_and_keeps_what_is_pending() -> None:
    log = KvLog(7)
    waiting = Pending(5, 1, [2, 3])
    log.record([Stored(1, [2]), waiting])
    log.clear(8)
    assert log.since(7, 1) == [KvSnapshotPart(8, 0, True, True, (), (waiting,))]
    assert log.heartbeat().digests == {}
    log.check()


def test_digests_count_sets_and_not_events() -> None:
    log = KvLog(7)
    log.record([Stored(1, [2, 3]), Stored(1, [2]), Stored(2, [3], Tier.HOST), Removed([9])])
    log.record([Removed([3])])
    digests = {Tier.DEVICE: Digest(1, 2), Tier.HOST: Digest(1, 3)}
    assert log.heartbeat().digests == digests
    log.check()


def test_a_block_leaves_tier_by_tier() -> None:
    log = KvLog(7)
    log.record([Stored(1, [2]), Stored(1, [2], Tier.HOST), Removed([2], Tier.HOST)])
    assert stored_in(snapshot_of(log)) == [Stored(1, [2])]
    log.record([Removed([2])])
    assert len(log) == 0
    log.check()


def test_parents_precede_children_even_when_stored_again_later() -> None:
    log = KvLog(7)
    log.record([Stored(1, [2, 3, 4]), Removed([2]), Stored(1, [2])])
    assert stored_in(snapshot_of(log)) == [Stored(1, [2, 3, 4])]


def test_a_run_is_cut_where_tiers_change() -> None:
    log = KvLog(7)
    log.record([Stored(1, [2, 3]), Stored(2, [3, 4], Tier.HOST)])
    assert stored_in(snapshot_of(log)) == [
        Stored(1, [2]),
        Stored(2, [3]),
        Stored(2, [3], Tier.HOST),
        Stored(3, [4], Tier.HOST),
    ]


def test_settled_prompts_leave_the_snapshot() -> None:
    log = KvLog(7)
    log.record([Pending(1, 0, [2]), Pending(2, 0, [3]), Settled(1), Settled(99)])
    assert [prompt.key for part in snapshot_of(log) for prompt in part.pending] == [2]


def messages(updates: list[KvUpdate]) -> list[bytes]:
    return [kv_wire.update_to_pb(update).SerializeToString() for update in updates]


BIG = 2**63


@pytest.mark.slow
@pytest.mark.parametrize(
    "events",
    [
        pytest.param([Stored(1, range(BIG, BIG + 250_000))], id="one-long-run"),
        pytest.param([Stored(0, [BIG + n], Tier.HOST) for n in range(50_000)], id="many-roots"),
        pytest.param([Pending(n, 1, [BIG + n]) for n in range(50_000)], id="many-prompts"),
        pytest.param([Pending(1, 1, range(BIG, BIG + 250_000))], id="one-huge-prompt"),
    ],
)
def test_every_message_stays_under_a_megabyte(events: list[KvEvent]) -> None:
    log = KvLog(2**64 - 1)
    log.record(events)
    steps = log.since(2**64 - 1, 0)
    for update in (*steps, *snapshot_of(log)):
        assert kv_wire.update_to_pb(update).ByteSize() < MEGABYTE


def test_a_run_cut_for_size_goes_on_where_it_was_cut() -> None:
    log = KvLog(7)
    log.record([Stored(1, range(2, 250_002))])
    runs = [event for step in log.since(7, 0) if isinstance(step, KvStep) for event in step.events]
    assert [run.parent for run in runs if isinstance(run, Stored)] == [1, 99_998, 199_995]
    assert len(log) == 250_000
