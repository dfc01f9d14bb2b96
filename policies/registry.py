"""Policies by name."""

import difflib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from radixgate.clock import Clock
from radixgate.errors import ConfigError
from radixgate.policies.base import Policy
from radixgate.policies.cache_aware import CacheAwareConfig, cache_aware
from radixgate.policies.kv_cost import KvCost, KvCostConfig
from radixgate.policies.least_load import LeastLoad
from radixgate.policies.lmetric import LMetric
from radixgate.policies.power_of_two import PowerOfTwo
from radixgate.policies.prefix_hash import PrefixHash, PrefixHashConfig
from radixgate.policies.random_choice import RandomChoice
from radixgate.policies.round_robin import RoundRobin
from radixgate.policies.sticky import Sticky, StickyConfig

DEFAULT_POLICY = "kv_cost"


@dataclass(frozen=True, slots=True)
class PolicyConfigs:
    """The configuration of every policy; each reads its own."""

    cache_aware: CacheAwareConfig = field(default_factory=CacheAwareConfig)
    kv_cost: KvCostConfig = field(default_factory=KvCostConfig)
    prefix_hash: PrefixHashConfig = field(default_factory=PrefixHashConfig)
    sticky: StickyConfig = field(default_factory=StickyConfig)


PolicyMaker = Callable[[PolicyConfigs, Clock, random.Random], Policy]

POLICIES: Mapping[str, PolicyMaker] = MappingProxyType(
    {
        "round_robin": lambda configs, clock, rng: RoundRobin(rng),
        "random": lambda configs, clock, rng: RandomChoice(rng),
        "power_of_two": lambda configs, clock, rng: PowerOfTwo(rng),
        "cache_aware": lambda configs, clock, rng: cache_aware(configs.cache_aware, rng),
        "kv_cost": lambda configs, clock, rng: KvCost(configs.kv_cost, rng),
        "prefix_hash": lambda configs, clock, rng: PrefixHash(configs.prefix_hash, rng),
        "sticky": lambda configs, clock, rng: Sticky(configs.sticky, rng),
        "least_load": lambda configs, clock, rng: LeastLoad(rng),
        "lmetric": lambda configs, clock, rng: LMetric(rng),
    }
)


def make_policy(
    name: str, clock: Clock, rng: random.Random, configs: PolicyConfigs | None = None
) -> Policy:
    """A new policy object. Raises ConfigError, with the nearest name, if none is so called."""
    maker = POLICIES.get(name)
    if maker is None:
        near = difflib.get_close_matches(name, POLICIES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"no policy is called {name!r}; there are {', '.join(POLICIES)}{hint}")
    return maker(configs or PolicyConfigs(), clock, rng)


def check_thresholds(name: str, configs: PolicyConfigs) -> None:
    """Raises ConfigError if cache_aware's thresholds are given where the default rule would run.

    Whoever gives them has SGLang's default in mind, which is cache_aware.
    """
    if name == DEFAULT_POLICY and configs.cache_aware != CacheAwareConfig():
        raise ConfigError(
            "cache_threshold, balance_abs_threshold and balance_rel_threshold belong to"
            f" cache_aware, and the policy is {name}: give --policy cache_aware, or leave them out"
        )
