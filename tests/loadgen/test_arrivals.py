"""Intended times: right rate, no drift, the same for the same seed."""

import math
import random
from itertools import pairwise

import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ArrivalConfig, arrival_times


def times(
    kind: str, count: int, requests_per_s: float, seed: int = 1, shape: ArrivalConfig | None = None
) -> list[float]:
    return arrival_times(
        kind,
        count=count,
        requests_per_s=requests_per_s,
        rng=random.Random(str(seed)),
        shape=shape,
    )


@pytest.mark.parametrize("kind", ["poisson", "constant"])
def test_an_infinite_rate_sends_all_at_once(kind: str) -> None:
    assert times(kind, 3, math.inf) == [0.0, 0.0, 0.0]


def test_constant_is_exact_to_the_last() -> None:
    found = times("constant", 100_001, 200.0)
    assert found[0] == 0.0
    assert found[-1] == 500.0


def test_poisson_gaps_are_exponential() -> None:
    found = times("poisson", 20_001, 50.0)
    gaps = [late - early for early, late in pairwise(found)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    # Four standard errors of the mean of an exponential.
    assert mean == pytest.approx(1 / 50, rel=4 / math.sqrt(len(gaps)))
    assert deviation / mean == pytest.approx(1.0, abs=0.05)
    assert found == sorted(found)


def test_poisson_follows_its_seed() -> None:
    assert times("poisson", 50, 4.0, seed=7) == times("poisson", 50, 4.0, seed=7)
    assert times("poisson", 50, 4.0, seed=7) != times("poisson", 50, 4.0, seed=8)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("kind", ["poisson", "constant"])
def test_few_requests(kind: str, count: int) -> None:
    assert times(kind, count, 4.0) == [0.0] * count


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_a_rate_must_be_over_zero(rate: float) -> None:
    with pytest.raises(ConfigError, match="--request-rate"):
        times("poisson", 3, rate)


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(ConfigError, match="poisson, constant"):
        times("weibull", 3, 1.0)


KINDS = ["poisson", "constant", "gamma", "on-off", "ramp"]


@pytest.mark.parametrize("kind", KINDS)
def test_times_rise_from_zero_and_follow_the_seed(kind: str) -> None:
    found = times(kind, 500, 20.0)
    assert found[0] == 0.0
    assert found == sorted(found)
    assert found == times(kind, 500, 20.0)


@pytest.mark.parametrize("kind", ["poisson", "gamma", "on-off"])
def test_the_rate_is_the_mean_rate(kind: str) -> None:
    shape = ArrivalConfig(burstiness=0.5, on_s=0.2, off_s=0.6)
    found = times(kind, 20_001, 50.0, shape=shape)
    assert 20_000 / found[-1] == pytest.approx(50.0, rel=0.05)


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gammas_gaps_vary_as_their_shape_says(burstiness: float) -> None:
    found = times("gamma", 40_001, 50.0, shape=ArrivalConfig(burstiness=burstiness))
    gaps = [late - early for early, late in pairwise(found)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert deviation / mean == pytest.approx(1 / math.sqrt(burstiness), rel=0.02)


def test_bursts_come_and_go() -> None:
    """Ten times the calm's rate in a burst: counts of half seconds vary far more than Poisson's."""
    shape = ArrivalConfig(on_s=2.0, off_s=6.0, off_share=0.0)
    counts = [0] * 400
    for time_s in times("on-off", 4000, 20.0, shape=shape):
        if time_s < 200.0:
            counts[int(2 * time_s)] += 1
    mean = sum(counts) / len(counts)
    variance = sum((count - mean) ** 2 for count in counts) / len(counts)
    assert variance / mean > 5.0
    assert counts.count(0) > 100


def test_a_ramp_ends_at_its_rate() -> None:
    found = times("ramp", 10_000, 100.0)
    assert found[-1] == pytest.approx(200.0, rel=0.05)  # 10,000 at 50 a second on average
    last = [time_s for time_s in found if time_s > found[-1] - 10.0]
    assert len(last) / 10.0 == pytest.approx(97.5, rel=0.1)
    first = [time_s for time_s in found if time_s < 20.0]
    assert len(first) / 20.0 == pytest.approx(5.0, rel=0.3)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("burstiness", 0.0),
        ("on_s", -1.0),
        ("off_share", 1.0),
        ("ramp_from", -0.1),
        ("rl_target", 0.0),
        ("trace_slowdown", math.inf),
    ],
)
def test_impossible_shapes_are_named(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match="--" + field.replace("_", "-")):
        ArrivalConfig(**{field: value})
