"""Looking thirty times fools nobody, and the number of pairs is as the formula says."""

import math

import numpy as np
import pytest
from scipy import stats

from radixgate.analysis.experiments.naive import welch_on_requests
from radixgate.analysis.experiments.peeking import confidence_sequence
from radixgate.analysis.experiments.power import fewest_pairs, pairs_needed

RUNS, PAIRS, LOOKS = 500, 40, range(10, 41)


def test_one_look_by_hand() -> None:
    differences = [1.0, 3.0] * 5
    (look,) = confidence_sequence(differences, planned=10)
    rho2 = (-2 * math.log(0.05) + math.log(-2 * math.log(0.05) + 1)) / 10
    spread = math.sqrt(10 / 9)
    grown = 10 * rho2 + 1
    reach = spread * math.sqrt(2 * grown / (100 * rho2) * math.log(math.sqrt(grown) / 0.05))
    assert (look.pairs, look.estimate) == (10, 2.0)
    assert look.interval.high - 2.0 == pytest.approx(reach)
    assert 2.0 - look.interval.low == pytest.approx(reach)


def test_nine_pairs_are_too_few_to_look_at() -> None:
    assert confidence_sequence([1.0] * 9, planned=40) == []


def test_differences_that_are_all_alike_have_no_width() -> None:
    assert confidence_sequence([2.0] * 10, planned=10)[0].always_valid_p == 0.0
    assert confidence_sequence([0.0] * 10, planned=10)[0].always_valid_p == 1.0


@pytest.mark.slow
def test_thirty_looks_of_nothing_refuse_it_in_five_of_a_hundred_at_most() -> None:
    rng = np.random.default_rng(11)
    by_sequence = by_mixture = by_fixed = 0
    for _ in range(RUNS):
        d = list(rng.normal(0.0, 1.0, PAIRS))
        looks = confidence_sequence(d, planned=PAIRS)
        by_sequence += any(not look.interval.low <= 0 <= look.interval.high for look in looks)
        by_mixture += looks[-1].always_valid_p <= 0.05
        by_fixed += any(abs(math.fsum(d[:n])) / math.sqrt(n) > stats.norm.ppf(0.975) for n in LOOKS)
    most = stats.binom.ppf(0.995, RUNS, 0.05)
    assert by_sequence <= most
    assert by_mixture <= most
    assert by_fixed > 0.15 * RUNS


def test_an_effect_is_found_while_looking() -> None:
    rng = np.random.default_rng(12)
    looks = confidence_sequence(list(rng.normal(1.5, 1.0, PAIRS)), planned=PAIRS)
    assert looks[-1].interval.low > 0.0
    p_values = [look.always_valid_p for look in looks]
    assert p_values == sorted(p_values, reverse=True)
    assert p_values[-1] < 0.001


def test_pairs_needed_by_hand_and_by_trying() -> None:
    assert pairs_needed(0.1, 0.23) == math.ceil(((1.959964 + 0.841621) * 2.3) ** 2) == 42
    assert pairs_needed(10.0, 0.1) == fewest_pairs() == 6
    with pytest.raises(ValueError, match="effect of 0"):
        pairs_needed(0.0, 1.0)
    rng = np.random.default_rng(13)
    n = pairs_needed(0.5, 1.0)
    found = stats.ttest_1samp(rng.normal(0.5, 1.0, (2_000, n)), 0.0, axis=1).pvalue < 0.05
    assert 0.74 < found.mean() < 0.84


def test_welch_takes_what_requests_share_for_evidence() -> None:
    """Two hundred requests a block, blocks that differ: alike arms are called different."""
    rng = np.random.default_rng(14)
    refused = 0
    for _ in range(200):
        blocks = rng.normal(0.0, 0.3, 16)[:, None] + rng.normal(0.0, 1.0, (16, 200))
        refused += welch_on_requests(list(blocks[::2].ravel()), list(blocks[1::2].ravel())) < 0.05
    assert refused > 80
    assert welch_on_requests([1.0], [2.0, 3.0]) == 1.0
