"""Figures come with n and intervals, and a tail that nothing holds up is refused."""

import pytest

from radixgate.analysis.figures import Figure, adjusted_of, figure_of, figures_of
from radixgate.analysis.records import ABANDONED
from request_records import record


def named(figures: tuple[Figure, ...], name: str) -> Figure:
    (found,) = [figure for figure in figures if figure.name == name]
    return found


@pytest.mark.parametrize(
    ("n", "q", "shown"),
    [
        pytest.param(999, 99.0, False, id="p99-of-999"),
        pytest.param(1000, 99.0, True, id="p99-of-1000"),
        pytest.param(9999, 99.9, False, id="p999-of-9999"),
        pytest.param(10_000, 99.9, True, id="p999-of-10000"),
        pytest.param(5, 95.0, True, id="p95-of-5"),
    ],
)
def test_a_tail_takes_enough_values(n: int, q: float, shown: bool) -> None:
    figure = figure_of("x", "f", [[float(place)] for place in range(n)])
    (found,) = [quantile for quantile in figure.quantiles if quantile.q == q]
    assert (found.value_s is not None) == shown
    assert (found.interval is not None) == (shown and n >= 30)


def test_response_counts_from_the_intended_time_and_service_from_the_dispatch() -> None:
    figures = figures_of([record((3.0, 1), (3.5, 1), sent=2.0, due=0.5)])
    assert named(figures, "response TTFT").mean_s == pytest.approx(2.5)
    assert named(figures, "TTFT").mean_s == pytest.approx(1.0)
    assert named(figures, "response E2E").mean_s == pytest.approx(3.0)
    assert named(figures, "schedule lag").mean_s == pytest.approx(1.5)


def test_of_a_closed_loop_everything_counts_from_the_dispatch() -> None:
    """All its requests are due at the beginning: counted from there the last would be the worst."""
    records = [record((n + 1.0, 1), (n + 1.5, 1), sent=float(n), due=0.0) for n in range(100)]
    figures = figures_of(records, open_loop=False)
    assert [one.name for one in figures] == ["TTFT", "E2E", "TPOT", "ITL by token", "ITL by gap"]
    assert named(figures, "TTFT").max_s == pytest.approx(1.0)
    ttft, e2e = adjusted_of(records, open_loop=False)
    assert (ttft.name, e2e.name) == ("TTFT", "E2E")
    assert ttft.quantiles["p95"] == pytest.approx(1.0)
    assert e2e.quantiles["p95"] == pytest.approx(1.5)


def test_tokens_and_gaps_are_told_apart() -> None:
    figures = figures_of([record((1.0, 1), (2.0, 4))])
    assert named(figures, "ITL by gap").n == 1
    assert named(figures, "ITL by token").n == 4
    assert named(figures, "ITL by token").mean_s == pytest.approx(0.25)
    assert named(figures, "TPOT").mean_s == pytest.approx(0.25)


def test_nothing_measured_is_nothing_shown() -> None:
    figure = named(figures_of([record(failure="timeout")]), "TTFT")
    assert (figure.n, figure.mean_s, figure.max_s) == (0, None, None)


def test_failing_fast_improves_no_adjusted_percentile() -> None:
    good = [record((1.0 + 0.01 * n, 1), index=n) for n in range(95)]
    failed = [record(failure="HTTP 500", end=0.001, index=95 + n) for n in range(5)]
    ttft, e2e = adjusted_of([*good, *failed])
    assert (ttft.n, ttft.failed) == (100, 5)
    assert ttft.quantiles["p50"] == pytest.approx(1.49)
    assert ttft.quantiles["p90"] == pytest.approx(1.89)
    worse = adjusted_of([*good[:90], *failed, *failed])[0]
    assert worse.quantiles["p90"] == pytest.approx(1.89)
    assert worse.quantiles["p95"] is None
    assert e2e.n == 100


def test_what_the_client_gave_up_was_not_offered() -> None:
    (ttft, _) = adjusted_of([record((1.0, 1)), record(failure=ABANDONED)])
    assert (ttft.n, ttft.failed) == (1, 0)
