"""Guardrails: what they read, when they trip, and that a report reads the same."""

import pytest

from experiment_parts import line, rail
from radixgate.analysis.experiments import metrics
from radixgate.analysis.experiments.records import Guardrail
from radixgate.errors import ConfigError
from radixgate.gateway.experiments.declared import METRICS as REPORTED
from radixgate.gateway.experiments.guard import METRICS, Guard, rail_of


def guard(*rails: Guardrail, window_s: float = 60.0) -> Guard:
    return Guard(rails, window_s)


def test_names_and_directions_are_those_of_the_report() -> None:
    assert set(REPORTED) == set(metrics.NAMES)
    assert METRICS.keys() <= metrics.METRICS.keys()
    for name, watched in METRICS.items():
        assert watched.floor == (metrics.METRICS[name].better == 1), name


def test_values_are_those_of_the_report() -> None:
    lines = [
        line(at_s=float(n), ttft_s=n / 10, e2e_s=n / 5, cached_tokens=n, prompt_tokens=20)
        for n in range(1, 11)
    ]
    lines.append(line(at_s=11.0, outcome="failed"))
    for name in ("ttft_mean", "e2e_mean", "hit_rate", "error_share"):
        assert METRICS[name].of(lines) == pytest.approx(metrics.METRICS[name].of(lines)), name
    assert METRICS["ttft_p95"].of(lines) == 1.0
    assert METRICS["ttft_p50"].of(lines) == 0.5


def test_it_needs_its_fewest_requests() -> None:
    watching = guard(rail("ttft_p95", 1.0, fewest=3))
    for at_s in (1.0, 2.0):
        watching.add(1, line(at_s=at_s, ttft_s=5.0))
        assert watching.tripped() is None
    watching.add(1, line(at_s=3.0, ttft_s=5.0))
    trip = watching.tripped()
    assert trip is not None
    assert (trip.value, trip.limit, trip.requests) == (5.0, 1.0, 3)


def test_a_multiple_of_a_needs_as_many_of_a() -> None:
    watching = guard(rail("ttft_mean", 3.0, relative=True, fewest=2))
    for at_s in (1.0, 2.0):
        watching.add(1, line(at_s=at_s, ttft_s=4.0))
    assert watching.tripped() is None
    for at_s in (1.0, 2.0):
        watching.add(0, line("A", at_s=at_s, ttft_s=1.0))
    trip = watching.tripped()
    assert trip is not None
    assert (trip.value, trip.limit) == (4.0, 3.0)


def test_a_hit_rate_is_passed_from_above() -> None:
    watching = guard(rail("hit_rate", 0.5))
    watching.add(1, line(cached_tokens=6, prompt_tokens=10))
    assert watching.tripped() is None
    watching.add(1, line(at_s=1.0, cached_tokens=0, prompt_tokens=10))
    assert watching.tripped() is not None


def test_the_washout_excuses_latency_but_no_errors() -> None:
    watching = guard(rail("ttft_p95", 1.0), rail("error_share", 0.1))
    watching.add(1, line(ttft_s=9.0, washout=True))
    assert watching.tripped() is None
    watching.add(1, line(at_s=1.0, outcome="rejected", washout=True))
    trip = watching.tripped()
    assert trip is not None
    assert (trip.guardrail.metric, trip.value) == ("error_share", 0.5)


def test_what_clients_gave_up_counts_for_nothing() -> None:
    watching = guard(rail("error_share", 0.1))
    watching.add(1, line(outcome="aborted"))
    assert watching.tripped() is None


def test_old_requests_leave_the_window() -> None:
    watching = guard(rail("error_share", 0.1), window_s=10.0)
    watching.add(1, line(at_s=0.0, outcome="failed"))
    watching.add(1, line(at_s=10.5))
    assert watching.tripped() is None


def test_a_request_that_waits_beyond_the_limit_is_past_it_already() -> None:
    watching = guard(rail("ttft_p95", 2.0, fewest=2))
    watching.add(1, line(ttft_s=0.1))
    assert watching.tripped([1.9]) is None
    trip = watching.tripped([2.1, 0.5])
    assert trip is not None
    assert (trip.value, trip.requests) == (2.1, 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ttft_p95=2", Guardrail("ttft_p95=2", "ttft_p95", 2.0, False, 7)),
        ("hit_rate = 0.8x", Guardrail("hit_rate = 0.8x", "hit_rate", 0.8, True, 7)),
    ],
)
def test_a_guardrail_is_read(text: str, expected: Guardrail) -> None:
    assert rail_of(text, 7) == expected


@pytest.mark.parametrize("text", ["ttft_p95", "ttft_p95=", "ttft_p95=-1", "ttft_p95=inf", "x=1"])
def test_one_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="guardrail"):
        rail_of(text, 7)
