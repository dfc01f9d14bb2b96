"""The columns of reports are what the records say, whenever they are read."""

from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from books import IDLE, identity, report
from clocks import FakeClock
from radixgate.fleet.load_report import LoadReport
from radixgate.fleet.own_queue import OwnQueue
from radixgate.fleet.ready_order import picker
from radixgate.fleet.ready_workers import ReadyWorkers
from radixgate.fleet.worker_record import SharedMirror, WorkerRecord
from radixgate.radix_mirror.mirror import MirrorConfig, RadixMirror


def records(*names: str) -> list[WorkerRecord]:
    made = [identity(name) for name in names]
    shared = SharedMirror.of(made[0].mirror, FakeClock(), MirrorConfig())
    return [WorkerRecord(one, shared, OwnQueue(count(1))) for one in made]


@dataclass(slots=True)
class Told:
    """Ready workers a and b, and what they tell."""

    ready: ReadyWorkers = field(default_factory=lambda: ReadyWorkers(records("a", "b"), 0.0))

    def tell(self, place: int, report: LoadReport, now: float) -> None:
        record = self.ready.records[place]
        record.report, record.reported_at = report, now
        self.ready.heard(record.identity.id, now)


def test_a_report_changes_its_worker_s_place_only() -> None:
    told = Told()
    told.tell(
        1,
        report(
            running=3,
            waiting=2,
            queued_uncached_tokens=900,
            queued_uncached_tokens_yours=400,
            kv_tokens_used=30,
            kv_tokens_total=120,
        ),
        now=0.0,
    )
    ready = told.ready
    assert (ready.running, ready.waiting) == ([None, 3], [None, 2])
    assert (ready.queued, ready.queued_elsewhere) == ([None, 900], [None, 500])
    assert ready.kv_share == [None, 0.25]
    assert ready.told(0.0).requests == [-1, 5]


def test_more_of_ours_than_is_queued_is_nothing_of_others() -> None:
    told = Told()
    told.tell(0, report(queued_uncached_tokens=10, queued_uncached_tokens_yours=90), now=0.0)
    assert told.ready.queued_elsewhere == [0, None]


def test_who_does_not_tell_its_pool_has_no_share_of_it() -> None:
    told = Told()
    told.tell(0, report(running=1), now=0.0)
    assert (told.ready.running, told.ready.kv_share) == ([1, None], [None, None])


def test_one_that_is_not_ready_is_not_heard() -> None:
    told = Told()
    told.ready.heard("c", 0.0)
    assert told.ready.running == [None, None]


def test_a_report_leaves_when_it_is_too_old_and_others_stay() -> None:
    told = Told()
    told.tell(0, report(running=1), now=0.0)
    told.tell(1, report(running=2), now=1.5)
    for now, running in ((2.0, [1, 2]), (2.1, [None, 2]), (3.5, [None, 2]), (3.6, [None, None])):
        told.ready.refresh(now)
        assert told.ready.running == running


@given(
    steps=st.lists(
        st.tuples(st.sampled_from([0, 1]), st.booleans(), st.floats(0.0, 1.5)), max_size=20
    )
)
def test_columns_are_those_of_ready_workers_made_anew(
    steps: list[tuple[int, bool, float]],
) -> None:
    told, now = Told(), 0.0
    for number, (place, speaks, later) in enumerate(steps):
        now += later
        if speaks:
            used = 7 * number % 10
            tells = report(
                running=number,
                queued_uncached_tokens=number,
                kv_tokens_used=used,
                kv_tokens_total=10 if used else 0,
            )
            told.tell(place, tells, now)
        told.ready.refresh(now)
        anew = ReadyWorkers(told.ready.records, now)
        assert told.ready.running == anew.running
        assert told.ready.queued_elsewhere == anew.queued_elsewhere
        assert told.ready.kv_share == anew.kv_share
        assert told.ready.told(now).most_kv == anew.told(now).most_kv


def test_a_speed_is_entered_with_the_report_that_shows_it() -> None:
    told = Told()
    record = told.ready.records[0]
    for total in (IDLE, report(prefill_busy_us_total=1_000_000, prefill_tokens_total=4_000)):
        record.speed.add(total, 0.0)
        told.tell(0, total, now=0.0)
    assert told.ready.speeds == [pytest.approx(4_000.0), None]


def test_requests_there_are_ours_or_what_is_reported_whichever_is_more() -> None:
    told = Told()
    told.ready.take_charge()
    told.ready.records[0].counts.add(0, 4)
    told.tell(0, report(running=2, waiting=1), now=0.0)
    told.tell(1, report(running=3), now=0.0)
    assert told.ready.in_flight.there == [4, 3]
    told.ready.records[0].counts.add(0, -2)
    told.ready.records[1].counts.add(1, 1)
    assert told.ready.in_flight.there == [3, 3]
    told.ready.refresh(3.0)  # both reports are too old
    assert told.ready.in_flight.there == [2, 1]
    told.ready.check()


def test_what_is_in_flight_moves_to_the_columns_that_take_charge() -> None:
    told = Told()
    for record in told.ready.records:
        record.counts.add(record.place, 2)
    told.ready.take_charge()
    told.ready.records[1].counts.uncached[told.ready.records[1].place] += 70
    assert (told.ready.in_flight.requests, told.ready.in_flight.uncached) == ([2, 2], [0, 70])


def test_columns_without_charge_stay_as_they_were_made() -> None:
    told = Told()
    told.ready.take_charge()
    once = ReadyWorkers(told.ready.records[:1], 0.0)
    told.ready.records[0].counts.add(0, 1)
    assert (once.in_flight.requests, told.ready.in_flight.requests) == ([0], [1, 0])
    told.ready.check()


def test_places_in_the_mirror_are_asked_for_again_when_one_has_come_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told()
    for record in told.ready.records:
        record.enter_mirror()
    assert told.ready.picked([7, 8, 9]) == (7, 8)
    mirror = told.ready.mirrors[0].mirror
    with monkeypatch.context() as nobody_asks:
        nobody_asks.setattr(RadixMirror, "place", None)
        assert told.ready.picked([7, 8, 9]) == (7, 8)
    mirror.remove_worker("a")
    for record in told.ready.records[::-1]:
        record.enter_mirror()
    assert told.ready.picked([7, 8, 9]) == (8, 7)


def test_of_a_single_worker_a_column_has_one_part_and_of_none_it_has_none() -> None:
    assert list(picker([2])([7, 8, 9])) == [9]
    assert list(picker([])([7, 8, 9])) == []


def test_decisions_share_the_columns_until_somebody_reports() -> None:
    told = Told()
    told.tell(0, report(running=1), now=0.0)
    before = told.ready.told(0.0)
    assert told.ready.told(0.5) is before
    told.tell(1, report(running=2), now=1.0)
    assert (before.running, told.ready.told(1.0).running) == ([1, None], [1, 2])
    assert (before.requests, told.ready.told(1.0).requests) == ([1, -1], [1, 2])
    assert told.ready.told(2.5).running == [None, 2]
    assert told.ready.told(2.5).requests == [-1, 2]


def test_the_fullest_pool_and_whether_others_have_sent_some_is_known_at_once() -> None:
    told, full = Told(), report(kv_tokens_used=30, kv_tokens_total=120)
    told.ready.take_charge()

    def known() -> tuple[float | None, bool]:
        told.ready.check()
        columns = told.ready.told(0.0)
        return columns.most_kv, columns.sent_elsewhere

    told.tell(0, report(kv_tokens_total=120, queued_uncached_tokens=7), now=0.0)
    assert known() == (None, True)
    told.tell(1, full, now=0.0)
    assert known() == (0.25, True)
    told.tell(1, report(kv_tokens_used=12, kv_tokens_total=120), now=0.0)
    assert known() == (0.1, True)
    told.tell(0, full, now=0.0)
    assert known() == (0.25, False)
    told.tell(1, IDLE, now=0.0)
    assert known() == (None, False)
