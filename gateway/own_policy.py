"""The policy a gateway was told to go by, made so that its choices can be repeated."""

import random
from dataclasses import dataclass

from radixgate.clock import Clock
from radixgate.fleet.journal import Rule
from radixgate.policies.base import Policy
from radixgate.policies.registry import PolicyConfigs, make_policy

_SEED_BITS = 63


@dataclass(frozen=True, slots=True)
class OwnPolicy:
    """A policy with a random source of its own, and how to make it again."""

    policy: Policy
    rule: Rule


def own_policy(name: str, configs: PolicyConfigs, clock: Clock, rng: random.Random) -> OwnPolicy:
    """Draws a seed from `rng`. Raises ConfigError as `make_policy`."""
    seed = rng.getrandbits(_SEED_BITS)
    policy = make_policy(name, clock, random.Random(seed), configs)
    return OwnPolicy(policy, Rule.of(name, configs, seed))
