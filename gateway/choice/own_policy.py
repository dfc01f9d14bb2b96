"""Policies of a gateway, made so that their choices can be repeated, and put in place."""

import random

from radixgate.clock import Clock
from radixgate.fleet.fleet import Fleet
from radixgate.fleet.rule import Rule, RuledPolicy
from radixgate.policies.registry import PolicyConfigs, make_policy

_SEED_BITS = 63


def own_policy(name: str, configs: PolicyConfigs, clock: Clock, rng: random.Random) -> RuledPolicy:
    """With a random source of its own, whose seed is drawn from `rng`, so that what it draws does
    not shift what others draw. Raises ConfigError as `make_policy`."""
    seed = rng.getrandbits(_SEED_BITS)
    policy = make_policy(name, clock, random.Random(seed), configs)
    return RuledPolicy(policy, Rule.of(name, configs, seed))


def let_decide(fleet: Fleet, ruled: RuledPolicy) -> None:
    """From now on it chooses, and the journal, if one is kept, says so."""
    fleet.use_policy(ruled.policy)
    if fleet.journal is not None:
        fleet.journal.begin(ruled.rule)
