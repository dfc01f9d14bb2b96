"""What a run's figures count and what they leave out."""

import pytest

from radixgate.analysis.records import RequestRecord
from radixgate.analysis.summary import summarise
from request_records import record


def test_failures_are_counted_by_class_and_enter_nothing_else() -> None:
    good = [record((0.1, 4), (0.5, 6), worker="w1"), record((0.2, 10), worker="w2")]
    bad = [
        record(failure="HTTP 500", end=0.001),
        record((0.01, 3), failure="cut off", end=60.0),
        record(failure="HTTP 500", end=0.002),
    ]
    alone, mixed = summarise(good), summarise([*bad, *good])
    assert (mixed.offered, mixed.completed, mixed.failed) == (5, 2, 3)
    assert list(mixed.failures.items()) == [("HTTP 500", 2), ("cut off", 1)]
    assert (mixed.ttft, mixed.tpot, mixed.itl, mixed.e2e) == (
        alone.ttft,
        alone.tpot,
        alone.itl,
        alone.e2e,
    )
    assert mixed.output_tokens == 20
    assert mixed.workers == {"w1": 1, "w2": 1}


def test_a_failure_that_hangs_dilutes_no_rate() -> None:
    run = summarise([record((1.0, 10)), record(failure="timeout", end=600.0)])
    assert run.duration_s == pytest.approx(1.0)
    assert run.wall_s == pytest.approx(600.0)
    assert run.output_token_rate == pytest.approx(10.0)


def test_a_server_that_is_gone_is_not_as_fast_as_it_was() -> None:
    run = summarise(
        [record((1.0, 10)), *(record(sent=at, failure="refused") for at in (2.0, 3.0, 4.0))]
    )
    assert run.duration_s == pytest.approx(4.0)
    assert run.request_rate == pytest.approx(0.25)


def test_nothing_of_a_run_that_only_failed_has_a_rate() -> None:
    run = summarise([record(sent=at, failure="refused") for at in (0.0, 5.0)])
    assert (run.duration_s, run.request_rate) == (0.0, 0.0)


def test_duration_begins_with_the_first_dispatch() -> None:
    run = summarise([record((3.0, 2), sent=2.0), record((4.0, 2), sent=3.0)])
    assert run.duration_s == pytest.approx(2.0)
    assert run.request_rate == pytest.approx(1.0)
    assert run.total_token_rate == pytest.approx((200 + 4) / 2)
    assert run.concurrency == pytest.approx(1.0)


def test_cached_share_is_of_the_prompts_whose_answers_told() -> None:
    run = summarise(
        [
            record((1.0, 1), prompt=100, cached=80),
            record((1.0, 1), prompt=300, cached=0),
            record((1.0, 1), prompt=999, cached=None),
        ]
    )
    assert run.cached_token_share == pytest.approx(0.2)


def test_untold_shares_are_absent_not_zero() -> None:
    assert summarise([record((1.0, 1), cached=None)]).cached_token_share is None


def test_planned_lengths_stand_in_where_the_server_counts_no_prompt() -> None:
    run = summarise([record((1.0, 1), prompt=None), record((1.0, 1), prompt=50)])
    assert run.input_tokens == 150
    assert run.input_tokens_planned == 100


def test_an_empty_answer_counts_in_no_ttft() -> None:
    run = summarise([record(end=0.3), record((0.1, 1))])
    assert run.completed == 2
    assert run.ttft is not None
    assert run.ttft.n == 1
    assert run.ttft.min > 0


@pytest.mark.parametrize(
    "records",
    [pytest.param([], id="nothing-sent"), pytest.param([record(failure="timeout")], id="all-lost")],
)
def test_nothing_measured_has_no_figures(records: list[RequestRecord]) -> None:
    run = summarise(records)
    assert run.completed == 0
    assert run.ttft is None
    assert run.request_rate == 0.0
