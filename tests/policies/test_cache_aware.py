"""The rule without knobs: a lead in requests against the share of the prompt that it saves."""

import random

import pytest

from columns import PROMPT, columns
from radixgate.errors import ConfigError
from radixgate.policies.base import Candidates, RouteRequest
from radixgate.policies.cache_aware import CacheAware, CacheAwareConfig


def choose(policy: CacheAware, **of: object) -> tuple[int, str]:
    choice = policy.choose(PROMPT, columns(**of))  # type: ignore[arg-type]
    return choice.index, choice.branch


@pytest.mark.parametrize(
    ("requests", "cached", "chosen", "branch"),
    [
        pytest.param([5, 0], [1_000, 0], 0, "hit", id="five-ahead-of-a-mean-of-two-and-a-half"),
        pytest.param([9, 0], [1_000, 0], 1, "imbalance", id="nine-ahead-is-too-much"),
        pytest.param([69, 60], [1_000, 0], 0, "hit", id="the-margin-grows-with-the-load"),
        pytest.param([69, 60], [100, 0], 1, "imbalance", id="and-shrinks-with-the-share-saved"),
        pytest.param([1, 0], [10, 0], 1, "imbalance", id="a-crumb-is-worth-no-wait"),
        pytest.param([0, 0], [10, 0], 0, "hit", id="but-is-taken-for-nothing"),
        pytest.param([3, 2], [0, 0], 1, "miss", id="a-miss-goes-to-the-least-busy"),
    ],
)
def test_a_match_earns_a_lead(
    requests: list[int], cached: list[int], chosen: int, branch: str
) -> None:
    policy = CacheAware(random.Random(1))
    assert choose(policy, count=2, requests=requests, cached=cached) == (chosen, branch)


def test_each_candidate_is_judged_for_itself() -> None:
    policy = CacheAware(random.Random(1))
    chosen = choose(policy, count=3, requests=[99, 3, 0], cached=[1_000, 990, 0])
    assert chosen == (1, "imbalance")


def test_equal_matches_go_by_requests_then_by_tokens() -> None:
    policy = CacheAware(random.Random(1))
    fleet = {"count": 3, "cached": [900] * 3, "requests": [2, 1, 1], "uncached": [0, 700, 500]}
    assert choose(policy, **fleet) == (2, "hit")


def test_equals_take_turns() -> None:
    policy = CacheAware(random.Random(1))
    first = [choose(policy, count=4)[0] for _ in range(4)]
    assert sorted(first) == [0, 1, 2, 3]
    assert [choose(policy, count=4)[0] for _ in range(8)] == first * 2


@pytest.mark.parametrize(
    ("share", "holders", "branch"),
    [
        pytest.param(0.2, 1, "hit", id="a-share-of-one-worker-is-held-by-one"),
        pytest.param(0.5, 1, "spread", id="half-of-the-traffic-needs-two-of-four"),
        pytest.param(0.5, 2, "hit", id="and-has-them"),
        pytest.param(0.9, 3, "spread", id="nearly-all-needs-all"),
        pytest.param(1.0, 4, "hit", id="everywhere"),
    ],
)
def test_a_popular_prefix_binds_nobody_until_it_lies_on_its_share_of_the_workers(
    share: float, holders: int, branch: str
) -> None:
    cached = [900] * holders + [0] * (4 - holders)
    fleet = columns(4, cached=cached, recent_share=lambda index: share)
    assert CacheAware(random.Random(1)).choose(PROMPT, fleet).branch == branch


@pytest.mark.parametrize(
    ("seen", "branch"),
    [pytest.param(7, "hit", id="chance"), pytest.param(9, "spread", id="popular")],
)
def test_in_a_large_fleet_a_few_prompts_are_chance(seen: int, branch: str) -> None:
    cached = [900] + [0] * 255
    fleet = columns(256, cached=cached, recent_share=lambda index: seen / 129)
    assert CacheAware(random.Random(1)).choose(PROMPT, fleet).branch == branch


def test_a_spread_prompt_goes_to_the_least_busy() -> None:
    fleet = columns(4, cached=[900, 0, 0, 0], requests=[1, 2, 1, 0], recent_share=lambda i: 1.0)
    assert CacheAware(random.Random(1)).choose(PROMPT, fleet).index == 3


def test_reports_count_other_gateways_requests_if_all_report() -> None:
    policy = CacheAware(random.Random(1))
    busy = {"count": 2, "requests": [0, 1], "cached": [0, 0]}
    assert choose(policy, **busy, reported=[9, 1])[0] == 1
    assert choose(policy, **busy, reported=[9, None])[0] == 0
    assert choose(policy, **busy, reported=[0, 0], waiting=[9, 0])[0] == 1
    assert choose(policy, **busy, reported=[0, 0])[0] == 0


@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param({"cache_threshold": 1.5}, id="share-above-one"),
        pytest.param({"balance_abs_threshold": -1}, id="negative-difference"),
        pytest.param({"balance_rel_threshold": -0.5}, id="negative-ratio"),
    ],
)
def test_knobs_out_of_range_are_errors(knobs: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(knobs))):
        CacheAwareConfig(**knobs)  # type: ignore[arg-type]


def test_no_lead_at_all_can_be_allowed() -> None:
    strict = CacheAwareConfig(balance_abs_threshold=0, balance_rel_threshold=0.0)
    assert (strict.balance_abs_threshold, strict.balance_rel_threshold) == (0, 0.0)


SESSION = RouteRequest(prompt_tokens=1_000, session="s")


@pytest.mark.parametrize(
    ("fleet", "stays"),
    [
        pytest.param(columns(4, cached=[900] * 4), True, id="among-equals"),
        pytest.param(columns(4, cached=[900] * 4, requests=[2, 0, 0, 0]), True, id="two-ahead"),
        pytest.param(columns(4, cached=[900] * 4, requests=[3, 0, 0, 0]), False, id="three-ahead"),
        pytest.param(columns(4, cached=[900, 0, 950, 0]), False, id="another-holds-more"),
        pytest.param(columns(4), True, id="nobody-holds-a-whole-block"),
        pytest.param(
            columns(4, cached=[900, 0, 0, 0], recent_share=lambda index: 1.0),
            True,
            id="a-popular-prefix-is-for-others-to-spread",
        ),
        pytest.param(columns(3, ids=["w1", "w2", "w3"], cached=[9] * 3), False, id="it-left"),
    ],
)
def test_a_session_stays_where_it_was(fleet: Candidates, stays: bool) -> None:
    policy = CacheAware(random.Random(1))
    policy.choose(SESSION, columns(1, ids=["w0"]))
    # w0 has had its turn, so that equals go elsewhere.
    policy.choose(PROMPT, columns(2, ids=["w0", "x"], uncached=[0, 0]))
    policy.choose(PROMPT, columns(2, ids=["w0", "x"], uncached=[0, 0]))
    chosen = policy.choose(SESSION, fleet).index
    assert (fleet.ids[chosen] == "w0") is stays
