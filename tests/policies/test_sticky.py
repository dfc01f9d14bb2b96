"""sticky: a session stays, unless its worker is gone, crowded or far behind."""

import random

import pytest

from columns import columns
from radixgate.errors import ConfigError
from radixgate.policies.base import RouteRequest
from radixgate.policies.sticky import Sticky, StickyConfig

TURN = RouteRequest(1_000, session="s")


def settled(**knobs: float) -> Sticky:
    """A session whose home is the first of two workers."""
    policy = Sticky(StickyConfig(**knobs), random.Random(1))  # type: ignore[arg-type]
    assert policy.choose(TURN, columns(2, uncached=[0, 1])).index == 0
    return policy


@pytest.mark.parametrize(
    ("queue", "branch"),
    [
        pytest.param(2_000, "home", id="two-prompts-behind"),
        pytest.param(2_001, "overloaded", id="a-token-more"),
    ],
)
def test_it_stays_up_to_a_queue_of_so_many_prompts(queue: int, branch: str) -> None:
    assert settled().choose(TURN, columns(2, uncached=[queue, 0])).branch == branch


def test_it_leaves_a_crowd() -> None:
    assert settled().choose(TURN, columns(2, requests=[4, 0])).branch == "home"
    strict = {"sticky_load_factor": 1.0}  # the mean, and 4 more
    assert settled(**strict).choose(TURN, columns(2, requests=[8, 0])).branch == "home"
    assert settled(**strict).choose(TURN, columns(2, requests=[9, 0])).index == 1


def test_once_moved_it_stays_there() -> None:
    policy = settled()
    assert policy.choose(TURN, columns(2, uncached=[9_000, 0])).index == 1
    assert policy.choose(TURN, columns(2, uncached=[0, 900])).index == 1


def test_a_worker_that_is_gone_is_replaced() -> None:
    policy = settled()
    choice = policy.choose(TURN, columns(2, ids=["w7", "w8"], uncached=[5, 0]))
    assert (choice.index, choice.branch) == (1, "gone")


def test_a_group_is_a_session_for_who_names_none() -> None:
    policy = Sticky(StickyConfig(), random.Random(1))
    member = RouteRequest(1_000, group="g")
    home = policy.choose(member, columns(3)).index
    busy = [0] * 3
    busy[home] = 500
    assert policy.choose(member, columns(3, uncached=busy)).index == home


def test_the_oldest_session_is_forgotten() -> None:
    policy = settled(sticky_sessions=1)
    policy.choose(RouteRequest(1_000, session="other"), columns(2))
    assert policy.choose(TURN, columns(2, uncached=[1, 0])).branch == "new"


@pytest.mark.parametrize(
    "knobs", [{"sticky_break_margin": -1.0}, {"sticky_load_factor": 0.5}, {"sticky_sessions": 0}]
)
def test_impossible_settings_are_refused(knobs: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(knobs))):
        StickyConfig(**knobs)  # type: ignore[arg-type]
