"""Names that some of a group serve, or of several: what is known of a worker holds there too."""

import random
from dataclasses import replace

import pytest

from books import identity, report
from clocks import FakeClock
from radixgate.errors import NoWorkerAvailable
from radixgate.fleet.fleet import Ask, Fleet, WorkerState
from radixgate.fleet.ready_groups import ReadyGroups
from radixgate.fleet.ready_workers import ReadyWorkers
from radixgate.policies.registry import make_policy

ADAPTERS = {"w0": ("x",), "w1": ("x",), "w2": ("x", "y"), "w3": ()}


def fleet(policy: str = "kv_cost") -> tuple[Fleet, FakeClock]:
    """Four workers of a model, of which three have an adapter loaded; w0 is to be the slow one."""
    clock, rng = FakeClock(), random.Random(1)
    books = Fleet(make_policy(policy, clock, rng), clock, rng)
    for name, adapters in ADAPTERS.items():
        books.admit(replace(identity(name), adapters=adapters))
        books.set_state(name, WorkerState.READY)
    return books, clock


def work(books: Fleet, clock: FakeClock, steps: int = 60) -> None:
    """Each computes a thousand tokens a report; w0 takes four times as long for them."""
    for step in range(steps):
        clock.advance(0.5)
        for name in ADAPTERS:
            busy_us = (400_000 if name == "w0" else 100_000) * step
            told = replace(report(kv_tokens_total=1_000), prefill_tokens_total=1_000 * step)
            books.report_load(name, replace(told, prefill_busy_us_total=busy_us))


def speeds(books: Fleet, name: str) -> dict[str, float | None]:
    found = books.rehearse(Ask(name, 1_000, {})).candidates
    return dict(zip(found.ids, found.prefill_tokens_per_s, strict=True))


def test_a_slow_worker_is_known_by_an_adapter_s_name_though_none_asked_for_the_model() -> None:
    books, clock = fleet()
    books.lease(Ask("x", 10, {}))
    work(books, clock)
    assert speeds(books, "x") == {"w0": 2_500.0, "w1": 10_000.0, "w2": 10_000.0}
    assert speeds(books, "toy") == {**speeds(books, "x"), "w3": 10_000.0}


def test_a_slow_worker_is_known_by_its_model_s_name_though_that_is_another_s_alias() -> None:
    books, clock = fleet()
    books.admit(replace(identity("other", model="b"), aliases=("toy",)))
    books.set_state("other", WorkerState.READY)
    books.lease(Ask("toy", 10, {}))
    work(books, clock)
    fast = dict.fromkeys(("w1", "w2", "w3"), 10_000.0)
    assert speeds(books, "toy") == {"w0": 2_500.0, **fast, "other": None}


def test_who_is_left_for_a_second_attempt_is_known_as_before() -> None:
    books, clock = fleet()
    books.lease(Ask("toy", 10, {}))
    work(books, clock)
    found = books.rehearse(Ask("toy", 1_000, {}), exclude=["w1", "w3"]).candidates
    known = dict(zip(found.ids, found.prefill_tokens_per_s, strict=True))
    assert known == {"w0": 2_500.0, "w2": 10_000.0}
    with pytest.raises(NoWorkerAvailable, match="2 left out"):
        books.lease(Ask("y", 10, {}), exclude=["w2", "w0"])


def test_a_request_under_such_a_name_looks_at_no_record_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    books, _ = fleet()
    books.lease(Ask("x", 10, {}))
    with monkeypatch.context() as nothing_is_made:
        nothing_is_made.setattr(ReadyWorkers, "__init__", None)
        nothing_is_made.setattr(ReadyGroups, "_serving", None)
        nothing_is_made.setattr(ReadyGroups, "_of", None)
        for _ in range(5):
            books.lease(Ask("x", 10, {}))
    found = books.rehearse(Ask("x", 10, {})).candidates
    assert [*found.requests_in_flight] == [2, 2, 2]


def test_columns_are_shared_until_somebody_reports() -> None:
    books, clock = fleet()
    books.lease(Ask("x", 10, {}))
    before, again = (books.rehearse(Ask("x", 10, {})).candidates for _ in range(2))
    assert before.prefill_tokens_per_s is again.prefill_tokens_per_s
    books.report_load("w1", report(running=3))
    after = books.rehearse(Ask("x", 10, {})).candidates
    running = dict(zip(after.ids, after.running, strict=True))
    assert running == {"w0": None, "w1": 3, "w2": None}
    clock.advance(2.5)
    assert set(books.rehearse(Ask("x", 10, {})).candidates.running) == {None}


@pytest.mark.parametrize("seed", range(4))
def test_picked_columns_are_those_of_workers_looked_at_anew(seed: int) -> None:
    """Two models under one name, an adapter of some: whatever is sent and reported."""
    books, clock = fleet()
    draw = random.Random(seed)
    for name in ("b0", "b1"):
        books.admit(replace(identity(name, model="b"), aliases=("both",)))
        books.set_state(name, WorkerState.READY)
    books.rename(replace(identity("w3"), aliases=("both",), adapters=("y",)))
    for _ in range(200):
        name = draw.choice(("x", "y", "both", "toy", "b"))
        lease = books.lease(Ask(name, draw.randrange(1, 99), {}))
        if draw.random() < 0.5:
            lease.first_output()
        told = report(
            running=draw.randrange(4),
            waiting=draw.randrange(4),
            queued_uncached_tokens=draw.randrange(99),
            queued_uncached_tokens_yours=draw.randrange(9),
            kv_tokens_used=draw.randrange(9),
            kv_tokens_total=draw.choice((0, 10)),
        )
        books.report_load(draw.choice((*ADAPTERS, "b0", "b1")), told)
        clock.advance(draw.choice((0.0, 0.1, 1.5)))
        found = books.rehearse(Ask(name, 10, {})).candidates
        records = [books.record(worker_id) for worker_id in found.ids]
        anew = ReadyWorkers([one for one in records if one is not None], clock.now())
        expected = anew.told(clock.now())
        assert [*found.running] == [*expected.running]
        assert [*found.waiting] == [*expected.waiting]
        assert [*found.queued_uncached_tokens] == [*expected.queued]
        assert [*found.queued_elsewhere] == [*expected.queued_elsewhere]
        assert found.most_kv_share == expected.most_kv
        assert [*found.reported_requests] == [*expected.requests]
        assert [*found.requests_in_flight] == anew.in_flight.requests
        assert [*found.uncached_tokens_in_flight] == anew.in_flight.uncached
        assert [*found.requests_there] == anew.in_flight.there
        books.check()
