"""Who keeps the time is chosen; where nobody does, who is late takes least from others."""

import random

import pytest

from columns import columns
from radixgate.errors import ConfigError
from radixgate.policies.base import Candidates, RouteRequest
from radixgate.policies.kv_cost import KvCost, KvCostConfig
from radixgate.policies.registry import PolicyConfigs, effective_policy
from radixgate.policies.slo import Slo, SloConfig

SPEED = 1_000.0  # tokens a second: a token is a millisecond


def policy(*, ttft: float | None = None, itl: float | None = None) -> KvCost:
    config = SloConfig(ttft_slo=ttft, itl_slo=itl)
    return KvCost(KvCostConfig(), random.Random(1), Slo(config) if config.given else None)


def fleet(cached: list[int], uncached: list[int], requests: list[int]) -> Candidates:
    return columns(2, speeds=[SPEED, SPEED], cached=cached, uncached=uncached, requests=requests)


@pytest.mark.parametrize(
    ("ttft_ms", "chosen", "branch"),
    [
        pytest.param(None, 0, "hit", id="without-an-aim-the-warm-one"),
        pytest.param(2_000, 1, "miss", id="with-one-the-cold-one-that-keeps-it"),
        pytest.param(3_000, 0, "hit", id="unless-the-warm-one-does-too"),
    ],
)
def test_of_two_the_one_that_keeps_the_time(ttft_ms: float, chosen: int, branch: str) -> None:
    # Warm behind 2.1 s of others' prompts, or cold at once in 1.7 s, which then costs others more.
    warm_or_idle = fleet(cached=[1_690, 0], uncached=[2_100, 0], requests=[1, 1])
    choice = policy(ttft=ttft_ms).choose(RouteRequest(1_700), warm_or_idle)
    assert (choice.index, choice.branch) == (chosen, branch)


def test_who_is_late_anyway_takes_the_least_from_others() -> None:
    # Nobody computes 6,000 tokens in two seconds; the warm one is long behind, and yet cheapest.
    late = fleet(cached=[1_000, 0], uncached=[5_000, 0], requests=[2, 2])
    request = RouteRequest(6_000)
    assert policy().choose(request, late).index == 1
    choice = policy(ttft=2_000).choose(request, late)
    assert (choice.index, choice.branch) == (0, "late")


def test_a_worker_whose_steps_are_too_slow_is_dearer_while_another_is_not() -> None:
    both = columns(2, cached=[500, 0], speeds=[SPEED, SPEED])
    slow = Candidates(
        **{
            name: getattr(both, name)
            for name in both.__struct_fields__
            if name != "read_decode_step_s"
        },
        read_decode_step_s=lambda: [0.2, 0.05],
    )
    request = RouteRequest(1_000)
    assert policy(itl=300.0).choose(request, slow).index == 0
    assert policy(itl=100.0).choose(request, slow).index == 1
    assert policy(itl=10.0).choose(request, slow).index == 0  # none keeps it
    assert policy(itl=100.0).choose(request, both).index == 0  # nobody has told


def test_nobody_is_late_for_an_aim_that_is_not_set() -> None:
    one = columns(1, uncached=[9_000], speeds=[SPEED])
    assert policy(itl=300.0).choose(RouteRequest(6_000), one).branch != "late"
    assert policy(ttft=300.0).choose(RouteRequest(6_000), one).branch == "late"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"ttft_slo": 0.0}, "over 0", id="no-time"),
        pytest.param({"itl_slo": -1.0}, "over 0", id="before-it-began"),
        pytest.param({"slo_miss_weight": -1.0}, "negative", id="reward"),
        pytest.param({"slo_late_share": 1.5}, "from 0 to 1", id="more-than-all"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        SloConfig(**fields)


def test_an_aim_chooses_the_policy_that_keeps_it() -> None:
    aim = PolicyConfigs(slo=SloConfig(ttft_slo=500.0))
    assert effective_policy("kv_cost", aim) == "kv_cost_slo"
    assert effective_policy("kv_cost_slo", aim) == "kv_cost_slo"
    assert effective_policy("kv_cost", PolicyConfigs()) == "kv_cost"
    assert effective_policy("sticky", PolicyConfigs()) == "sticky"
    with pytest.raises(ConfigError, match="keeps ttft_slo or itl_slo, and neither is given"):
        effective_policy("kv_cost_slo", PolicyConfigs())
    with pytest.raises(ConfigError, match="the policy is sticky: give --policy kv_cost_slo"):
        effective_policy("sticky", aim)
