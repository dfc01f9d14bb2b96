"""SGLang's three knobs."""

import random
from collections import Counter

import pytest

from columns import PROMPT, columns
from radixgate.policies.base import RouteRequest
from radixgate.policies.cache_aware import CacheAware, CacheAwareConfig, cache_aware
from radixgate.policies.cache_thresholds import CacheThresholds

A, B = 0, 1


def test_p03_a_miss_goes_to_the_least_busy_however_much_it_caches() -> None:
    # What each worker caches besides does not enter: a policy sees only this prompt's share of it.
    policy = CacheThresholds(random.Random(1))
    choice = policy.choose(PROMPT, columns(2, requests=[12, 0]))
    assert (choice.index, choice.branch) == (B, "miss")


def test_p03_misses_on_an_idle_fleet_spread_evenly() -> None:
    policy = CacheThresholds(random.Random(1))
    chosen = Counter(policy.choose(PROMPT, columns(3)).index for _ in range(300))
    assert all(chosen[index] == pytest.approx(100, abs=33) for index in range(3))


@pytest.mark.parametrize(
    ("requests", "chosen", "branch"),
    [
        pytest.param([9, 0], B, "imbalance", id="nine-to-none"),
        pytest.param([8, 0], A, "hit", id="eight-is-not-more-than-eight"),
        pytest.param([20, 15], A, "hit", id="a-difference-of-five"),
        pytest.param([9, 4], A, "hit", id="twice-as-many-but-five-more"),
        pytest.param([20, 10], B, "imbalance", id="ten-more-and-twice-as-many"),
        pytest.param([28, 19], A, "hit", id="nine-more-but-not-half-as-many-again"),
    ],
)
def test_p03_a_hit_is_given_up_only_beyond_both_thresholds(
    requests: list[int], chosen: int, branch: str
) -> None:
    policy = CacheThresholds(random.Random(1), balance_abs=8, balance_rel=1.5)
    choice = policy.choose(PROMPT, columns(2, requests=requests, cached=[999, 0]))
    assert (choice.index, choice.branch) == (chosen, branch)


@pytest.mark.parametrize(
    ("cached", "chosen"),
    [
        pytest.param(49, B, id="below"),
        pytest.param(50, B, id="at"),
        pytest.param(51, A, id="above"),
    ],
)
def test_p03_a_match_counts_above_the_threshold(cached: int, chosen: int) -> None:
    policy = CacheThresholds(random.Random(1), cache_threshold=0.5)
    fleet = columns(2, requests=[1, 0], cached=[cached, 0])
    assert policy.choose(RouteRequest(prompt_tokens=100), fleet).index == chosen


def test_one_busy_worker_does_not_end_the_affinity_of_others() -> None:
    policy = CacheThresholds(random.Random(1), balance_abs=8, balance_rel=1.5)
    fleet = columns(3, requests=[50, 5, 0], cached=[0, 900, 0])
    assert policy.choose(PROMPT, fleet).index == 1


def test_the_next_best_match_stands_in_for_one_that_is_too_busy() -> None:
    policy = CacheThresholds(random.Random(1), balance_abs=8, balance_rel=1.5)
    fleet = columns(3, requests=[50, 5, 0], cached=[990, 900, 0])
    assert policy.choose(PROMPT, fleet).index == 1


def test_equal_matches_go_to_the_less_busy_and_then_by_lot() -> None:
    policy = CacheThresholds(random.Random(1))
    fleet = columns(4, requests=[2, 1, 1, 0], cached=[900, 900, 900, 0])
    chosen = Counter(policy.choose(PROMPT, fleet).index for _ in range(400))
    assert chosen.keys() == {1, 2}
    assert chosen[1] == pytest.approx(200, abs=40)


@pytest.mark.parametrize(
    ("config", "threshold", "absolute", "relative"),
    [
        pytest.param(CacheAwareConfig(cache_threshold=0.5), 0.5, 64, 1.5, id="threshold"),
        pytest.param(CacheAwareConfig(balance_abs_threshold=8), 0.3, 8, 1.5, id="absolute"),
        pytest.param(CacheAwareConfig(balance_rel_threshold=1.1), 0.3, 64, 1.1, id="relative"),
        pytest.param(CacheAwareConfig(0.0, 0, 0.0), 0.0, 0, 0.0, id="zero-is-given"),
    ],
)
def test_one_knob_given_brings_sglangs_values_for_the_others(
    config: CacheAwareConfig, threshold: float, absolute: int, relative: float
) -> None:
    made = cache_aware(config, random.Random(1))
    same = CacheThresholds(
        random.Random(1),
        cache_threshold=threshold,
        balance_abs=absolute,
        balance_rel=relative,
    )
    rng = random.Random(2)
    for _ in range(200):
        requests = [rng.randrange(200) for _ in range(4)]
        fleet = columns(4, requests=requests, cached=[rng.randrange(1_000) for _ in range(4)])
        assert made.choose(PROMPT, fleet).index == same.choose(PROMPT, fleet).index


def test_no_knob_given_is_the_rule_whose_margin_grows() -> None:
    assert isinstance(cache_aware(CacheAwareConfig(), random.Random(1)), CacheAware)
