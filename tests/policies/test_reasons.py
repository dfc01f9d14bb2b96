"""What a choice says of itself: the word that is counted, and the scores, least first."""

import random
from collections.abc import Sequence

import pytest

from clocks import FakeClock
from columns import PROMPT, columns
from radixgate.policies.base import Candidates, RouteRequest
from radixgate.policies.cache_aware import CacheAwareConfig
from radixgate.policies.cache_thresholds import CacheThresholds
from radixgate.policies.prefix_hash import PrefixHash, PrefixHashConfig
from radixgate.policies.registry import make_policy
from radixgate.policies.sticky import Sticky, StickyConfig


@pytest.mark.parametrize(
    ("name", "fleet", "branch", "scores"),
    [
        pytest.param("random", columns(3), "random", [0.0, 0.0, 0.0], id="random"),
        pytest.param("round_robin", columns(1), "rotation", [0.0], id="round-robin"),
        pytest.param("power_of_two", columns(1), "single", [0.0], id="one-is-no-pair"),
        pytest.param(
            "least_load", columns(2, uncached=[7, 5]), "least", [7.0, 5.0], id="least-load"
        ),
        pytest.param(
            "lmetric", columns(2, cached=[900, 0]), "hit", [100.0, 1_000.0], id="lmetric-hit"
        ),
        pytest.param(
            "lmetric",
            columns(2, cached=[900, 0], requests=[20, 0]),
            "miss",
            [2_100.0, 1_000.0],
            id="lmetric-miss",
        ),
        pytest.param(
            "lmetric",
            columns(2, cached=[1_000, 998]),
            "hit",
            [1.0, 2.0],
            id="lmetric-computes-a-last-token",
        ),
        pytest.param(
            "cache_aware",
            # They have 3 1/3 requests on average: 900 tokens earn a lead of 6.6, 500 one of 3.7.
            columns(3, cached=[900, 500, 0], requests=[9, 1, 0]),
            "imbalance",
            [1_001.0, 500.0, 1_000.0],
            id="cache-aware-has-a-lead-that-is-too-large-behind-all",
        ),
        pytest.param(
            "prefix_hash", columns(2, requests=[2, 1]), "no_prefix", [2.0, 1.0], id="no-prefix"
        ),
    ],
)
def test_the_reason_and_the_scores(
    name: str, fleet: Candidates, branch: str, scores: Sequence[float]
) -> None:
    choice = make_policy(name, FakeClock(), random.Random(1)).choose(PROMPT, fleet)
    assert (choice.branch, list(choice.explain())) == (branch, scores)
    assert scores[choice.index] == min(scores)


def test_round_robin_puts_all_others_behind_whose_turn_it_is() -> None:
    policy = make_policy("round_robin", FakeClock(), random.Random(1))
    for _ in range(3):
        choice = policy.choose(PROMPT, columns(3))
        assert [score == 0.0 for score in choice.explain()] == [n == choice.index for n in range(3)]


def test_thresholds_score_hits_by_what_is_computed_and_misses_behind_them() -> None:
    policy = CacheThresholds(random.Random(1), balance_abs=8, balance_rel=1.5)
    choice = policy.choose(PROMPT, columns(3, cached=[900, 500, 100]))
    assert list(choice.explain()) == [100.0, 500.0, 1_001.0]
    choice = policy.choose(PROMPT, columns(3, requests=[5, 4, 3]))
    assert list(choice.explain()) == [5.0, 4.0, 3.0]


def test_a_hash_s_scores_are_places_and_a_full_worker_stands_behind_all() -> None:
    policy = PrefixHash(PrefixHashConfig(), random.Random(1))
    request = RouteRequest(64, blocks=(7, 8, 9, 10))
    home = policy.choose(request, columns(3))
    assert home.branch == "home"
    assert sorted(home.explain()) == [0.0, 1.0, 2.0]
    assert home.explain()[home.index] == 0.0
    full = [0, 0, 0]
    full[home.index] = 2
    moved = policy.choose(request, columns(3, requests=full))
    assert moved.branch == "overflow"
    assert moved.explain()[home.index] == 3.0
    assert moved.explain()[moved.index] == 1.0


def test_the_home_of_a_session_stands_before_all_others() -> None:
    policy = Sticky(StickyConfig(), random.Random(1))
    choice = policy.choose(RouteRequest(10, session="s"), columns(2, uncached=[5, 3]))
    assert (choice.branch, list(choice.explain())) == ("new", [5.0, -1.0])


@pytest.mark.parametrize("name", ["least_load", "lmetric", "prefix_hash", "sticky"])
def test_equals_take_turns(name: str) -> None:
    policy = make_policy(name, FakeClock(), random.Random(1))
    order = [policy.choose(PROMPT, columns(4)).index for _ in range(12)]
    assert sorted(order[:4]) == [0, 1, 2, 3]
    assert order == order[:4] * 3


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_none_of_a_prompt_and_all_of_it_are_shares(share: float) -> None:
    assert CacheAwareConfig(cache_threshold=share).cache_threshold == share
