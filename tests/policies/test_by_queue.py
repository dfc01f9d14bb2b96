"""least_load and lmetric."""

import random

import pytest

from clocks import FakeClock
from columns import PROMPT, columns
from radixgate.policies.least_load import LeastLoad
from radixgate.policies.lmetric import LMetric
from radixgate.policies.registry import make_policy


def test_least_load_counts_tokens_not_requests() -> None:
    fleet = columns(2, requests=[9, 1], uncached=[500, 600])
    assert LeastLoad(random.Random(1)).choose(PROMPT, fleet).index == 0


def test_least_load_sees_what_other_gateways_sent() -> None:
    fleet = columns(2, uncached=[500, 600], elsewhere=[200, None])
    assert LeastLoad(random.Random(1)).choose(PROMPT, fleet).index == 1


@pytest.mark.parametrize("name", ["least_load", "sticky"])
@pytest.mark.parametrize("requests", [[2, 1], [1, 2]])
def test_equal_queues_are_told_apart_by_requests(name: str, requests: list[int]) -> None:
    fleet = columns(2, requests=requests, uncached=[500, 500])
    choice = make_policy(name, FakeClock(), random.Random(1)).choose(PROMPT, fleet)
    assert requests[choice.index] == 1


def test_lmetric_multiplies_tokens_by_requests() -> None:
    fleet = columns(3, cached=[900, 500, 0], requests=[9, 1, 0], uncached=[0, 0, 200])
    choice = LMetric(random.Random(1)).choose(PROMPT, fleet)
    assert list(choice.explain()) == [100 * 10, 500 * 2, 1_200 * 1]
    assert choice.index in (0, 1)
    assert choice.branch == "hit"


def test_lmetric_of_a_wholly_cached_prompt_still_counts_requests() -> None:
    fleet = columns(2, cached=[1_000, 1_000], requests=[3, 1])
    assert LMetric(random.Random(1)).choose(PROMPT, fleet).index == 1
