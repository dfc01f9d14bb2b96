"""What every policy must do, whatever its rule."""

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clocks import FakeClock
from columns import PROMPT, columns
from radixgate.errors import NoWorkerAvailable
from radixgate.policies.base import Candidates, Policy, RouteRequest
from radixgate.policies.cache_aware import CacheAwareConfig
from radixgate.policies.registry import POLICIES, PolicyConfigs, make_policy
from radixgate.policies.rehearsal import understudy

Maker = Callable[[int], Policy]


def by_name(name: str, configs: PolicyConfigs | None = None) -> Maker:
    return lambda seed: make_policy(name, FakeClock(), random.Random(seed), configs)


MAKERS = {name: by_name(name) for name in POLICIES}
MAKERS["cache_aware_with_knobs"] = by_name(
    "cache_aware", PolicyConfigs(cache_aware=CacheAwareConfig(cache_threshold=0.5))
)

# A busy machine makes drawing slow; that says nothing about the code.
SLOW = [HealthCheck.too_slow]
every_policy = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@st.composite
def fleets(draw: st.DrawFn) -> Candidates:
    count = draw(st.integers(1, 6))
    column = st.lists(st.integers(0, 1_000), min_size=count, max_size=count)
    reports = st.lists(st.none() | st.integers(0, 1_000), min_size=count, max_size=count)
    share = draw(st.floats(0, 1))
    return columns(
        count,
        cached=draw(column),
        requests=draw(column),
        uncached=draw(column),
        reported=draw(reports),
        recent_share=lambda index: share,
    )


@every_policy
@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
@given(fleet=fleets(), prompt_tokens=st.integers(0, 2_000))
def test_the_choice_is_a_candidate_and_can_be_explained(
    make: Maker, fleet: Candidates, prompt_tokens: int
) -> None:
    choice = make(1).choose(RouteRequest(prompt_tokens), fleet)
    assert 0 <= choice.index < len(fleet)
    assert choice.branch
    scores = choice.explain()
    assert len(scores) == len(fleet)
    assert all(map(math.isfinite, scores))


@every_policy
def test_no_candidate_is_an_error_the_client_may_retry(make: Maker) -> None:
    with pytest.raises(NoWorkerAvailable, match=r"^no worker can be chosen$") as raised:
        make(1).choose(PROMPT, columns(0))
    assert raised.value.status == 503


@every_policy
def test_a_single_candidate_is_chosen_however_loaded(make: Maker) -> None:
    policy = make(1)
    for _ in range(3):
        assert policy.choose(PROMPT, columns(1, requests=[999], uncached=[999])).index == 0


@every_policy
@settings(max_examples=15, deadline=None, suppress_health_check=SLOW)
@given(seed=st.integers(0, 2**32), series=st.lists(fleets(), max_size=4))
def test_the_same_seed_makes_the_same_choices(
    make: Maker, seed: int, series: list[Candidates]
) -> None:
    first, second = make(seed), make(seed)
    for fleet in series:
        assert first.choose(PROMPT, fleet).index == second.choose(PROMPT, fleet).index


@every_policy
@settings(max_examples=15, deadline=None, suppress_health_check=SLOW)
@given(seed=st.integers(0, 2**32), series=st.lists(fleets(), min_size=1, max_size=6))
def test_what_it_would_choose_is_what_it_chooses_and_asking_changes_nothing(
    make: Maker, seed: int, series: list[Candidates]
) -> None:
    asked, unasked = make(seed), make(seed)
    for turn, fleet in enumerate(series):
        request = RouteRequest(1_000, session=f"s{turn % 2}", blocks=(turn % 2, 7))
        foretold = understudy(asked, random.Random(0)).choose(request, fleet)
        chosen, alone = asked.choose(request, fleet), unasked.choose(request, fleet)
        assert (foretold.index, foretold.branch) == (chosen.index, chosen.branch)
        assert list(foretold.explain()) == list(chosen.explain())
        assert (chosen.index, chosen.branch) == (alone.index, alone.branch)


@every_policy
def test_two_of_a_kind_share_no_state(make: Maker) -> None:
    fleet = columns(3, cached=[500, 0, 0], requests=[1, 1, 1])
    busy, fresh, alone = make(5), make(6), make(6)
    for turn in range(20):
        busy.choose(RouteRequest(1_000, session=f"s{turn % 3}"), fleet)
    series = [RouteRequest(1_000, session=f"s{turn % 3}") for turn in range(20)]
    chosen = [fresh.choose(request, fleet).index for request in series]
    assert chosen == [alone.choose(request, fleet).index for request in series]


@pytest.mark.slow
@every_policy
@pytest.mark.parametrize("cached", [pytest.param(0, id="cold"), pytest.param(900, id="warm")])
def test_equals_are_chosen_equally_often(make: Maker, cached: int) -> None:
    fleet = columns(5, cached=[cached] * 5, requests=[3] * 5)
    policy = make(7)
    chosen = Counter(policy.choose(PROMPT, fleet).index for _ in range(10_000))
    deviation = 4 * math.sqrt(10_000 * 0.2 * 0.8)
    assert all(abs(chosen[index] - 2_000) <= deviation for index in range(5))


@every_policy
def test_a_worker_that_joins_is_neither_flooded_nor_starved(make: Maker) -> None:
    policy = make(7)
    for _ in range(300):
        policy.choose(PROMPT, columns(3))
    chosen = Counter(policy.choose(PROMPT, columns(4)).index for _ in range(400))
    assert 60 <= chosen[3] <= 140


@every_policy
def test_many_workers_are_no_trouble(make: Maker) -> None:
    assert 0 <= make(1).choose(PROMPT, columns(1_000)).index < 1_000
