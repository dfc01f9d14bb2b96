"""Loads in one unit, two distinct candidates, reports that may be missing."""

import random
from collections import Counter

import pytest

from columns import PROMPT, columns
from radixgate.policies.power_of_two import PowerOfTwo


def test_p01_local_counts_enter_beside_a_report_that_stands_still() -> None:
    policy = PowerOfTwo(random.Random(1))
    own = [0, 0]
    for _ in range(10):
        own[policy.choose(PROMPT, columns(2, requests=own, reported=[0, 2])).index] += 1
    assert own == [6, 4]


def test_p01_a_missing_report_makes_both_fall_back_to_local_counts() -> None:
    policy = PowerOfTwo(random.Random(1))
    fleet = columns(2, requests=[1, 4], reported=[8_000, None])
    assert {policy.choose(PROMPT, fleet).index for _ in range(200)} == {0}


def test_p01_the_heaviest_of_three_never_wins() -> None:
    policy = PowerOfTwo(random.Random(1))
    fleet = columns(3, requests=[0, 5, 10])
    chosen = Counter(policy.choose(PROMPT, fleet).index for _ in range(6_000))
    assert chosen[0] == pytest.approx(4_000, abs=146)
    assert chosen[1] == pytest.approx(2_000, abs=146)
    assert chosen[2] == 0


def test_the_two_that_were_drawn_have_the_lowest_scores() -> None:
    choice = PowerOfTwo(random.Random(1)).choose(PROMPT, columns(4, requests=[5, 6, 7, 8]))
    scores = choice.explain()
    assert scores[choice.index] == min(scores)
    assert sorted(scores)[2] == sorted(scores)[3] > sorted(scores)[1]
    pair = PowerOfTwo(random.Random(1)).choose(PROMPT, columns(2, requests=[5, 3]))
    assert (pair.index, pair.branch, list(pair.explain())) == (1, "lighter_of_two", [5.0, 3.0])
