"""What is noted of the policy that decides."""

from radixgate.fleet.rule import UNNAMED, Rule, RuledPolicy
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.registry import PolicyConfigs


class First:
    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        return Choice(0, "first", list)


def test_a_rule_has_what_makes_the_policy_again() -> None:
    rule = Rule.of("sticky", PolicyConfigs(), 7)
    assert (rule.policy, rule.seed) == ("sticky", 7)
    assert rule.settings["sticky"]["sticky_sessions"] == 65_536


def test_a_policy_without_a_name_has_the_settings_it_is_put_together_with() -> None:
    settings: dict[str, dict[str, object]] = {"sticky": {"sticky_sessions": 3}}
    assert Rule("sticky", settings, 7).unnamed() == Rule(UNNAMED, settings, None)


def test_a_policy_that_has_chosen_is_the_same_but_for_its_seed() -> None:
    policy, settings = First(), {"sticky": {"sticky_sessions": object()}}
    used = RuledPolicy(policy, Rule("sticky", settings, 7)).used()
    assert used.policy is policy
    assert used.rule == Rule("sticky", settings, None)
