"""Differences are paired by round and by request, and no more is claimed than the rounds hold."""

import random

import pytest

from radixgate.analysis.comparison import Difference, differences
from radixgate.analysis.records import RequestRecord
from radixgate.analysis.slo import slo_of
from request_records import record


def run(seed: int, *, slower_s: float = 0.0, cached: int = 0) -> list[RequestRecord]:
    """100 requests with times of their own that are the same in every run, and a run's noise."""
    own, noise = random.Random(0), random.Random(seed).gauss(0.0, 0.002)
    return [
        record(
            (n + own.expovariate(10.0) + slower_s + noise, 1),
            sent=float(n),
            due=float(n),
            cached=cached,
            worker=f"w{n % 2}",
            index=n,
        )
        for n in range(100)
    ]


def named(found: list[Difference], name: str) -> Difference:
    (one,) = [one for one in found if one.metric == name]
    return one


def test_a_known_difference_is_found_in_ms_with_its_direction() -> None:
    baseline = [run(seed) for seed in range(4)]
    arm = [run(10 + seed, slower_s=0.05, cached=20) for seed in range(4)]
    found = differences(baseline, arm, slo_of(["ttft:100"]))
    ttft = named(found, "response TTFT, mean")
    assert ttft.difference == pytest.approx(50.0, abs=5.0)
    assert ttft.better is False
    assert ttft.over_pairs is not None
    assert ttft.over_pairs.low < 50.0 < ttft.over_pairs.high
    assert ttft.within is not None
    assert ttft.within.low > 40.0
    assert named(found, "cached prompt tokens").difference == pytest.approx(20.0)
    assert named(found, "cached prompt tokens").better is True
    assert named(found, "objective kept").difference < 0  # type: ignore[operator]


def test_runs_of_a_closed_loop_are_compared_from_the_dispatch() -> None:
    baseline = [[record((2.0, 1), sent=1.0, due=0.0)]]
    arm = [[record((9.5, 1), sent=8.0, due=0.0)]]
    found = differences(baseline, arm, open_loop=False)
    assert not any(one.metric.startswith("response") for one in found)
    assert named(found, "TTFT, mean").difference == pytest.approx(500.0)


def test_the_same_arm_twice_differs_in_nothing_that_is_claimed() -> None:
    found = differences([run(1), run(2)], [run(3), run(4)])
    assert all(one.better is None for one in found if one.metric.startswith("response"))


def test_one_round_claims_nothing() -> None:
    ttft = named(differences([run(1)], [run(2, slower_s=1.0)]), "response TTFT, mean")
    assert (ttft.over_pairs, ttft.better) == (None, None)


def test_what_a_run_lacks_is_not_compared() -> None:
    found = named(differences([run(1)], [run(2)]), "response TTFT, P99")
    assert (found.baseline, found.difference) == (None, None)


def test_runs_come_in_pairs() -> None:
    with pytest.raises(ValueError, match="2 and 1 runs"):
        differences([run(1), run(2)], [run(3)])


def test_who_died_half_way_is_half_as_fast() -> None:
    whole = [record((n + 0.5, 10), sent=float(n), index=n) for n in range(100)]
    dead = [
        *whole[:50],
        *(record(sent=float(n), failure="refused", index=n) for n in range(50, 100)),
    ]
    rate = named(differences([whole], [dead]), "requests a second")
    assert rate.baseline == pytest.approx(100 / 99.5)
    assert rate.arm == pytest.approx(50 / 99.0)
