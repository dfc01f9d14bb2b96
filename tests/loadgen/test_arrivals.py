"""Intended times: right rate, no drift, the same for the same seed."""

import math
import random
from itertools import pairwise

import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import arrival_times


def times(kind: str, count: int, requests_per_s: float, seed: int = 1) -> list[float]:
    return arrival_times(
        kind, count=count, requests_per_s=requests_per_s, rng=random.Random(str(seed))
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
