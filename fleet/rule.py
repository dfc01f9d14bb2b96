"""Which policy decides, and what it takes to let it decide the same again."""

from dataclasses import dataclass, replace

import msgspec

from radixgate.policies.base import Policy
from radixgate.policies.registry import PolicyConfigs

# Stands for a policy of which nobody can tell how to make it again.
UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy as it began to decide."""

    policy: str
    settings: dict[str, dict[str, object]]
    seed: int | None  # of its random source; None: nobody can tell

    @classmethod
    def of(cls, policy: str, configs: PolicyConfigs, seed: int | None) -> "Rule":
        """A policy that is made by this name, with a source of this seed."""
        return cls(policy, msgspec.to_builtins(configs), seed)

    def unnamed(self) -> "Rule":
        """Of a policy in this one's place that has no name, as it is put together."""
        return Rule(UNNAMED, self.settings, None)


@dataclass(frozen=True, slots=True)
class RuledPolicy:
    """A policy, and what is noted of it where decisions are."""

    policy: Policy
    rule: Rule

    def used(self) -> "RuledPolicy":
        """The same after some choices: its source is no longer where the seed puts it."""
        return replace(self, rule=replace(self.rule, seed=None))
