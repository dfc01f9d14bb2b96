"""A breaker opens on failures in a row, lets probes through, and never counts what says nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clocks import FakeClock
from radixgate.gateway.choice.breakers import MOST_PROBES, Breaker, Breakers, Verdict
from radixgate.gateway.settings.reliability_config import ReliabilityConfig

CONFIG = ReliabilityConfig(
    cb_failure_threshold=3, cb_success_threshold=2, cb_timeout_duration_secs=10
)
SUCCESS, NEUTRAL, FAILURE = Verdict.SUCCESS, Verdict.NEUTRAL, Verdict.FAILURE


def attempts(breakers: Breakers, *verdicts: Verdict) -> None:
    for verdict in verdicts:
        breakers.ended("w", verdict, breakers.dispatched("w"))
        breakers.check()


def opened() -> tuple[Breakers, FakeClock]:
    clock = FakeClock()
    breakers = Breakers(CONFIG, clock)
    attempts(breakers, FAILURE, FAILURE, FAILURE)
    return breakers, clock


@pytest.mark.parametrize(
    ("verdicts", "state"),
    [
        pytest.param([FAILURE] * 2, "closed", id="too-few"),
        pytest.param([FAILURE] * 3, "open", id="in-a-row"),
        pytest.param([FAILURE, FAILURE, SUCCESS, FAILURE], "closed", id="a-success-between"),
        pytest.param([FAILURE, NEUTRAL, FAILURE, NEUTRAL, FAILURE], "open", id="neutral-between"),
        pytest.param([NEUTRAL] * 60, "closed", id="neutral-alone"),
    ],
)
def test_failures_in_a_row_open_it(verdicts: list[Verdict], state: str) -> None:
    breakers = Breakers(CONFIG, FakeClock())
    attempts(breakers, *verdicts)
    assert breakers.state_of("w") == state
    assert list(breakers.barred()) == (["w"] if state == "open" else [])


def test_after_its_time_a_few_probes_may_go_at_once() -> None:
    breakers, clock = opened()
    clock.advance(10)
    assert breakers.state_of("w") == "half_open"
    probes = [breakers.dispatched("w") for _ in range(MOST_PROBES)]
    assert list(breakers.barred()) == ["w"]
    breakers.ended("w", NEUTRAL, probes.pop())
    assert not breakers.barred()
    for probe in probes:
        breakers.ended("w", SUCCESS, probe)
    assert breakers.state_of("w") == "closed"


def test_a_bad_probe_opens_it_anew_and_a_neutral_one_decides_nothing() -> None:
    breakers, clock = opened()
    clock.advance(10)
    attempts(breakers, NEUTRAL, SUCCESS, NEUTRAL)
    assert breakers.state_of("w") == "half_open"
    attempts(breakers, FAILURE)
    assert breakers.state_of("w") == "open"
    clock.advance(10)
    attempts(breakers, SUCCESS, SUCCESS)
    assert breakers.state_of("w") == "closed"


def test_what_began_before_it_opened_neither_closes_nor_prolongs_it() -> None:
    breakers, clock = opened()
    early: list[Breaker | None] = [None] * 4
    for verdict, probe in zip([SUCCESS, FAILURE, SUCCESS, FAILURE], early, strict=True):
        breakers.ended("w", verdict, probe)
    clock.advance(10)
    assert breakers.state_of("w") == "half_open"


def test_a_probe_of_a_process_that_is_gone_changes_nothing() -> None:
    breakers, clock = opened()
    clock.advance(10)
    probe = breakers.dispatched("w")
    breakers.forget("w")
    breakers.ended("w", FAILURE, probe)
    assert breakers.state_of("w") == "closed"
    breakers.check()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["go", "end", "wait"]), st.sampled_from(list(Verdict)))))
def test_counts_stay_possible(steps: list[tuple[str, Verdict]]) -> None:
    clock = FakeClock()
    breakers = Breakers(CONFIG, clock)
    running: list[Breaker | None] = []
    for what, verdict in steps:
        if what == "wait":
            clock.advance(6)
        elif what == "go" and "w" not in breakers.barred():
            running.append(breakers.dispatched("w"))
        elif what == "end" and running:
            breakers.ended("w", verdict, running.pop(0))
        breakers.check()
