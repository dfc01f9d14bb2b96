"""kv_cost in seconds: what each term does, and what happens where costs are equal."""

import random

import pytest

from columns import columns
from radixgate.errors import ConfigError
from radixgate.policies.base import Candidates, RouteRequest
from radixgate.policies.kv_cost import KvCost, KvCostConfig

PROMPT = RouteRequest(1_000)


def policy(**knobs: float) -> KvCost:
    return KvCost(KvCostConfig(**knobs), random.Random(1))


def costs(fleet: Candidates, request: RouteRequest = PROMPT, **knobs: float) -> list[float]:
    return list(policy(**knobs).choose(request, fleet).explain())


def test_every_term_is_in_seconds() -> None:
    fleet = columns(
        2,
        cached=[0, 600],
        uncached=[0, 500],
        elsewhere=[None, 100],
        speeds=[2_000.0, None],
        kv_share=[0.5, 0.95],
    )
    # Queue and own tokens at 2,000 a second, which is the median for who has not told.
    assert costs(fleet) == pytest.approx([1_000 / 2_000, (500 + 100 + 400) / 2_000 + 5.0 * 0.5])


@pytest.mark.parametrize(
    ("queue", "chosen"),
    [
        pytest.param(0, 0, id="idle-cache-wins"),
        pytest.param(700, 0, id="a-short-queue-is-worth-it"),
        pytest.param(900, 1, id="a-longer-one-is-not"),
    ],
)
def test_on_an_idle_fleet_a_hit_is_worth_the_tokens_it_saves(queue: int, chosen: int) -> None:
    fleet = columns(2, cached=[800, 0], uncached=[queue, 0])
    assert policy().choose(PROMPT, fleet).index == chosen


def test_the_busier_the_fleet_the_longer_a_queue_a_hit_is_worth() -> None:
    def fleet(requests: int) -> Candidates:
        return columns(2, cached=[800, 0], uncached=[5_000, 0], requests=[requests] * 2)

    assert policy().choose(PROMPT, fleet(4)).index == 1
    assert policy().choose(PROMPT, fleet(40)).index == 0
    assert policy(kv_cost_stall_weight=0.0).choose(PROMPT, fleet(40)).index == 1


def test_a_prompt_that_everybody_sends_at_once_comes_to_an_idle_worker() -> None:
    # Nobody runs on the second, so nobody is kept waiting by computing it there too.
    crowded = columns(2, cached=[900, 0], uncached=[1_000, 0], requests=[20, 0])
    assert policy().choose(PROMPT, crowded).index == 1


def test_a_cold_prompt_avoids_a_crowd_and_a_warm_one_bears_it() -> None:
    crowded = [12, 6]
    assert policy().choose(PROMPT, columns(2, requests=crowded, uncached=[0, 200])).index == 1
    assert policy().choose(PROMPT, columns(2, requests=crowded, cached=[900, 0])).index == 0
    weighed = costs(columns(2, requests=crowded))
    assert weighed == pytest.approx([1 + 0.3 * 9 + 2 * 3 / 13, 1 + 0.3 * 9])
    assert costs(columns(2, requests=crowded), kv_cost_crowd_weight=0.0) == pytest.approx([3.7] * 2)


@pytest.mark.parametrize(
    ("requests", "chosen"),
    [
        pytest.param([21, 0, 0, 0], 0, id="twenty-one-are-no-crowd"),
        pytest.param([22, 0, 0, 0], 1, id="sixteen-beyond-the-mean-are"),
        pytest.param([300, 220, 220, 220], 0, id="chance-brings-more-together-on-a-busy-fleet"),
        pytest.param([380, 220, 220, 220], 1, id="but-not-six-deviations"),
    ],
)
def test_nothing_cached_is_worth_a_crowd(requests: list[int], chosen: int) -> None:
    warm = columns(4, requests=requests, cached=[999, 0, 0, 0])
    assert policy().choose(PROMPT, warm).index in ([0] if chosen == 0 else [1, 2, 3])


def test_a_slow_worker_is_given_less() -> None:
    fleet = columns(2, uncached=[600, 0], speeds=[8_000.0, 1_000.0])
    assert policy().choose(PROMPT, fleet).index == 0


def test_equals_take_turns() -> None:
    chooser = policy()
    chosen = [chooser.choose(PROMPT, columns(3)).index for _ in range(6)]
    assert sorted(chosen[:3]) == sorted(chosen[3:]) == [0, 1, 2]


def test_costs_that_hardly_differ_are_decided_by_requests() -> None:
    fleet = columns(2, uncached=[100_000, 100_500], requests=[5, 4])
    assert policy().choose(PROMPT, fleet).index == 1


def test_equal_costs_are_decided_by_our_own_requests_only() -> None:
    """Half of the fleet also serves others: it costs the same, and that is all that counts."""
    shared, busy = [20, 20, 0, 0], [0, 0, 0, 1]
    fleet = columns(4, cached=[999] * 4, reported=shared, requests=busy, speeds=[20_000.0] * 4)
    turns = policy()
    assert {turns.choose(PROMPT, fleet).index for _ in range(9)} == {0, 1, 2}


def test_among_equals_the_reason_is_that_of_the_one_that_has_most() -> None:
    fleet = columns(3, cached=[0, 10, 5], requests=[0, 1, 1])
    choice = policy(kv_cost_stall_weight=0.0, kv_cost_crowd_weight=0.0).choose(PROMPT, fleet)
    assert (choice.index, choice.branch) == (0, "hit")


def test_a_session_does_not_move_for_little() -> None:
    chooser = policy()
    request = RouteRequest(1_000, session="s")
    home = chooser.choose(request, columns(2, cached=[900, 0])).index
    assert home == 0
    little = columns(2, cached=[900, 850], uncached=[300, 0])
    assert chooser.choose(request, little).index == 0
    assert chooser.choose(RouteRequest(1_000), little).index == 1
    much = columns(2, cached=[900, 850], uncached=[900, 0])
    assert chooser.choose(request, much).index == 1
    assert chooser.choose(request, columns(2, cached=[900, 850])).branch == "home"


def test_a_popular_prefix_is_computed_by_one_worker_more() -> None:
    popular = columns(4, cached=[200, 0, 0, 0], recent_share=lambda index: 0.5)
    choice = policy().choose(PROMPT, popular)
    assert choice.branch == "spread"
    held = columns(4, cached=[200, 200, 0, 0], recent_share=lambda index: 0.5)
    assert policy().choose(PROMPT, held).index in (0, 1)


@pytest.mark.parametrize(
    "name",
    [
        "kv_cost_stall_weight",
        "kv_cost_crowd_weight",
        "kv_cost_pressure_s",
        "kv_cost_home_margin",
    ],
)
def test_no_weight_is_negative(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        KvCostConfig(**{name: -1.0})
