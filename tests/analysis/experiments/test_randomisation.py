"""The randomisation test against counting by hand, scipy's, and arms that are alike."""

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from radixgate.analysis.experiments.randomisation import paired_test

numbers = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=9)


def by_hand(differences: list[float]) -> float:
    n = len(differences)
    lived = abs(sum(differences))
    orders = itertools.product((-1.0, 1.0), repeat=n)
    means = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in orders]
    return sum(mean >= lived for mean in means) / len(means)


def test_all_on_one_side_is_the_least_p_there_is() -> None:
    found = paired_test([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert found.exact
    assert found.p == 2 / 64
    assert found.estimate == 3.5
    assert found.sd == pytest.approx(math.sqrt(3.5))
    # A shift below the smallest is reached by two orders of 64 only, the lived one and its mirror
    # image; the smallest itself by the two that turn it alone, besides.
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (1.0, 6.0)


def test_five_pairs_can_refuse_nothing() -> None:
    found = paired_test([3.0, 3.1, 2.9, 3.0, 3.2])
    assert found.p == 2 / 32
    assert found.interval is None


@settings(max_examples=40)
@given(numbers)
def test_p_is_the_share_of_orders_as_far_from_nothing(differences: list[float]) -> None:
    assert paired_test(differences).p == by_hand(differences)


@settings(max_examples=40)
@given(st.lists(st.integers(-50, 50).map(float), min_size=6, max_size=9), st.integers(-60, 60))
def test_the_interval_holds_what_the_test_would_not_refuse(
    differences: list[float], shift: int
) -> None:
    found = paired_test(differences).interval
    assert found is not None
    moved = paired_test([value - shift for value in differences])
    if found.low < shift < found.high:
        assert moved.p > 0.05
    elif not found.low <= shift <= found.high:
        assert moved.p <= 0.05


def test_it_agrees_with_scipy() -> None:
    rng = np.random.default_rng(5)
    differences = rng.normal(0.3, 1.0, 11)
    reference = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert paired_test(list(differences)).p == pytest.approx(float(reference.pvalue))


def test_with_many_pairs_orders_are_drawn_and_it_agrees_with_student() -> None:
    rng = np.random.default_rng(6)
    differences = list(rng.normal(0.25, 1.0, 60))
    found = paired_test(differences)
    assert not found.exact
    student = stats.ttest_1samp(differences, 0.0)
    assert found.p == pytest.approx(float(student.pvalue), abs=0.02)
    assert found.interval is not None
    low, high = student.confidence_interval()
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=0.03)
    assert paired_test(differences) == found


def test_of_arms_that_are_alike_one_in_twenty_is_refused_and_19_intervals_hold_the_truth() -> None:
    """Differences with long tails, whatever their kind: only the coins matter."""
    rng = random.Random(7)
    refused = covered = 0
    for _ in range(400):
        coins = [rng.choice((-1.0, 1.0)) for _ in range(8)]
        differences = [coin * rng.lognormvariate(0.0, 1.5) + 2.0 for coin in coins]
        found = paired_test(differences)
        refused += paired_test([value - 2.0 for value in differences]).p <= 0.05
        assert found.interval is not None
        covered += found.interval.low <= 2.0 <= found.interval.high
    low, high = stats.binom.interval(0.99, 400, 0.05)
    assert low <= refused <= high
    assert 400 - high <= covered <= 400 - low


def test_without_a_pair_there_is_no_test() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        paired_test([])
