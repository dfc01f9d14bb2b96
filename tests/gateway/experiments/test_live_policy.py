"""Which policy the fleet goes by, whoever changes it; and what arms are made of."""

import random

import pytest

from books import Books
from clocks import FakeClock
from columns import PROMPT, columns
from decided import NotedFleet
from radixgate.analysis.experiments.records import Arm
from radixgate.errors import ConfigError
from radixgate.fleet.decision_lines import StartLine
from radixgate.fleet.rule import Rule, RuledPolicy
from radixgate.gateway.experiments.arm_policies import ArmPolicies
from radixgate.gateway.experiments.live_policy import LivePolicy
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.cache_aware import CacheAware
from radixgate.policies.cache_thresholds import CacheThresholds
from radixgate.policies.registry import PolicyConfigs
from radixgate.policies.sticky import StickyConfig


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        return Choice(0, self.name, list)


def ruled(name: str, seed: int = 1) -> RuledPolicy:
    return RuledPolicy(Named(name), Rule(name, {}, seed))


class Ear:
    def __init__(self) -> None:
        self.heard = 0

    def overhear(self, request: RouteRequest, candidates: Candidates) -> None:
        self.heard += 1


def test_an_experiment_keeps_its_turn_when_settings_change() -> None:
    own, tried, ear = ruled("own"), ruled("tried"), Ear()
    books = Books("a", policy=own.policy, reports_kv=False)
    live = LivePolicy(books.fleet, own)

    def by() -> str:
        return books.lease("text").choice.branch

    assert by() == "own"
    live.let_listen((ear,))
    assert live.own_decides
    live.use(tried)
    assert by() == "tried"
    live.change_own(ruled("newer"))
    assert by() == "tried"
    assert not live.own_decides
    live.revert()
    assert live.own_decides
    assert by() == "newer"
    live.change_own(ruled("newest"))
    assert by() == "newest"
    assert ear.heard == 4
    live.let_listen(())
    assert by() == "newest"
    assert ear.heard == 4


def test_the_journal_names_who_decides_and_not_who_listens() -> None:
    noted = NotedFleet("round_robin")
    own = ruled("own", 7)
    live = LivePolicy(noted.books.fleet, own)
    live.let_listen((Ear(),))
    live.revert()
    live.use(ruled("tried", 8))
    live.let_listen(())
    live.revert()
    live.revert()
    live.change_own(ruled("newer", 9))
    starts = [line for line in noted.lines() if isinstance(line, StartLine)]
    # What the gateway's own drew before the experiment is not drawn again: its seed is of no use.
    assert [(start.policy, start.seed) for start in starts[1:]] == [
        ("tried", 8),
        ("own", None),
        ("newer", 9),
    ]


def arms(configs: PolicyConfigs | None = None) -> ArmPolicies:
    return ArmPolicies(configs or PolicyConfigs(), "cache_aware", FakeClock(), random.Random(1))


def test_an_arm_has_settings_of_its_own() -> None:
    a = arms().arm("A", None, ())
    b = arms().arm("B", "cache_aware", ("balance-abs-threshold=4",))
    assert a == Arm("A", "cache_aware", {})
    assert b == Arm("B", "cache_aware", {"balance_abs_threshold": 4})
    assert isinstance(arms().make(a).policy, CacheAware)
    assert isinstance(arms().make(b).policy, CacheThresholds)
    assert arms().make(b).policy is not arms().make(b).policy


def test_an_arm_with_service_levels_has_their_settings_and_its_costs() -> None:
    given = ("ttft_slo=500", "kv_cost_crowd_weight=0")
    arm = arms().arm("B", "kv_cost_slo", given)
    assert arm.settings == {"ttft_slo": 500.0, "kv_cost_crowd_weight": 0.0}
    two = columns(2, uncached=[2_000, 1_000], speeds=[1_000.0, 1_000.0])
    choice = arms().make(arm).policy.choose(PROMPT, two)
    kept = arms().make(arms().arm("A", "kv_cost", given[1:])).policy.choose(PROMPT, two)
    assert (choice.branch, kept.branch) == ("late", "miss")
    with pytest.raises(ConfigError, match="kv_cost has no setting 'ttft_slo'"):
        arms().arm("A", "kv_cost", given[:1])
    with pytest.raises(ConfigError, match="neither is given: give one, or the policy kv_cost"):
        arms().arm("B", "kv_cost_slo", given[1:])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("sticky_load_factor",), "write it as name=value"),
        (("sticky_load_factor=2", "sticky-load-factor=3"), "is set twice"),
        (("sticky_load_factor=0.5",), "below 1 nobody could take the mean"),
        (("sticky_load_factor=much",), "expected a number"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(settings: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        arms().arm("B", "sticky", settings)


def test_arms_that_run_are_not_changed_by_what_is_read_again() -> None:
    before = arms()
    running = before.as_now()
    before.change(PolicyConfigs(sticky=StickyConfig(sticky_sessions=1)), "sticky")
    assert before.arm("A", None, ()).policy == "sticky"
    assert running.arm("A", None, ()).policy == "cache_aware"
