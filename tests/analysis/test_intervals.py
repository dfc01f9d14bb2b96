"""Intervals hold what they say as often as they say."""

import random

import pytest

from radixgate.analysis.bootstrap import by_blocks
from radixgate.analysis.intervals import paired, wilson


@pytest.mark.parametrize(
    ("good", "of", "low", "high"),
    [
        # Wilson's own closed form, worked out apart.
        pytest.param(0, 10, 0.0, 0.2775, id="none"),
        pytest.param(10, 10, 0.7225, 1.0, id="all"),
        pytest.param(95, 100, 0.8882, 0.9785, id="most"),
        pytest.param(0, 0, 0.0, 1.0, id="nothing-known"),
    ],
)
def test_wilson(good: int, of: int, low: float, high: float) -> None:
    found = wilson(good, of)
    assert found.low == pytest.approx(low, abs=1e-4)
    assert found.high == pytest.approx(high, abs=1e-4)


def test_more_than_all_is_no_share() -> None:
    with pytest.raises(ValueError, match="11 of 10"):
        wilson(11, 10)


def test_paired_is_students() -> None:
    found = paired([1.0, 2.0, 3.0])
    assert found is not None
    # Mean 2, standard error 1 / sqrt(3), t(0.975, 2) = 4.3027.
    assert found.low == pytest.approx(2 - 4.3027 / 3**0.5, abs=1e-3)
    assert found.high == pytest.approx(2 + 4.3027 / 3**0.5, abs=1e-3)
    assert paired([1.0]) is None


def test_fewer_than_thirty_requests_have_no_interval() -> None:
    assert by_blocks([[1.0]] * 29) is None
    assert by_blocks([[1.0]] * 29 + [[]] * 50) is None
    assert by_blocks([[1.0]] * 30) is not None


def test_the_same_values_give_the_same_interval() -> None:
    rng = random.Random(1)
    groups = [[rng.random()] for _ in range(200)]
    assert by_blocks(groups, [50.0, 90.0]) == by_blocks(groups, [50.0, 90.0])


def correlated(rng: random.Random, n: int) -> list[list[float]]:
    """Neighbours are alike, as requests in one queue are; the true mean is 0."""
    value, groups = 0.0, []
    for _ in range(n):
        value = 0.9 * value + rng.gauss(0.0, 1.0)
        groups.append([value])
    return groups


@pytest.mark.slow
def test_blocks_hold_the_truth_where_single_requests_would_not() -> None:
    """100 runs of 3,000: 95 % intervals by blocks; drawn one by one they would be 4 times less."""
    rng = random.Random(7)
    held = naive = 0
    for _ in range(100):
        groups = correlated(rng, 3000)
        found = by_blocks(groups)
        assert found is not None
        held += found.mean.low <= 0.0 <= found.mean.high
        values = [group[0] for group in groups]
        mean = sum(values) / len(values)
        deviation = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5
        naive += abs(mean) <= 1.96 * deviation / len(values) ** 0.5
    assert held >= 85
    assert naive <= 60


def test_an_interval_of_a_percentile_surrounds_it() -> None:
    rng = random.Random(3)
    groups = [[rng.expovariate(1.0) for _ in range(5)] for _ in range(400)]
    found = by_blocks(groups, [50.0, 90.0])
    assert found is not None
    assert found.percentiles[50.0].low < 0.693 < found.percentiles[50.0].high
    assert found.percentiles[90.0].low < 2.303 < found.percentiles[90.0].high
