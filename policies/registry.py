"""Policies by name."""

import difflib
import random
from collections.abc import Callable, Mapping, Sequence
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
from radixgate.policies.slo import Slo, SloConfig
from radixgate.policies.sticky import Sticky, StickyConfig
from radixgate.policies.third_party import offered_names, third_party

DEFAULT_POLICY = "kv_cost"
SLO_POLICY = "kv_cost_slo"


@dataclass(frozen=True, slots=True)
class PolicyConfigs:
    """The configuration of every policy; each reads its own."""

    cache_aware: CacheAwareConfig = field(default_factory=CacheAwareConfig)
    kv_cost: KvCostConfig = field(default_factory=KvCostConfig)
    prefix_hash: PrefixHashConfig = field(default_factory=PrefixHashConfig)
    sticky: StickyConfig = field(default_factory=StickyConfig)
    slo: SloConfig = field(default_factory=SloConfig)


PolicyMaker = Callable[[PolicyConfigs, Clock, random.Random], Policy]

POLICIES: Mapping[str, PolicyMaker] = MappingProxyType(
    {
        "round_robin": lambda configs, clock, rng: RoundRobin(rng),
        "random": lambda configs, clock, rng: RandomChoice(rng),
        "power_of_two": lambda configs, clock, rng: PowerOfTwo(rng),
        "cache_aware": lambda configs, clock, rng: cache_aware(configs.cache_aware, rng),
        "kv_cost": lambda configs, clock, rng: KvCost(configs.kv_cost, rng),
        "kv_cost_slo": lambda configs, clock, rng: KvCost(
            configs.kv_cost, rng, Slo(configs.slo) if configs.slo.given else None
        ),
        "prefix_hash": lambda configs, clock, rng: PrefixHash(configs.prefix_hash, rng),
        "sticky": lambda configs, clock, rng: Sticky(configs.sticky, rng),
        "least_load": lambda configs, clock, rng: LeastLoad(rng),
        "lmetric": lambda configs, clock, rng: LMetric(rng),
    }
)


def make_policy(
    name: str, clock: Clock, rng: random.Random, configs: PolicyConfigs | None = None
) -> Policy:
    """A new policy object, which shares no state with any other.

    Our own names come first, then those that installed packages bring. Raises ConfigError, with the
    nearest name, if none is so called, or if a package's policy cannot be used.
    """
    maker = POLICIES.get(name)
    if maker is not None:
        return maker(configs or PolicyConfigs(), clock, rng)
    policy = third_party(name, clock, rng)
    if policy is None:
        raise unknown_policy(name, policy_names())
    return policy


def policy_names() -> Sequence[str]:
    """All that can be made, ours first."""
    return [*POLICIES, *(name for name in offered_names() if name not in POLICIES)]


def unknown_policy(name: str, names: Sequence[str]) -> ConfigError:
    """Says which there are, and the nearest."""
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return ConfigError(f"no policy is called {name!r:.100}; there are {', '.join(names)}{hint}")


def effective_policy(name: str, configs: PolicyConfigs) -> str:
    """The policy that settings ask for: with an SLO, `kv_cost` is `kv_cost_slo`.

    Raises ConfigError for settings of a policy that would not run, and for a policy without those
    it lives by.
    """
    check_thresholds(name, configs)
    check_aims(name, configs)
    if not configs.slo.given:
        return name
    if name not in (DEFAULT_POLICY, SLO_POLICY):
        raise ConfigError(
            f"ttft_slo and itl_slo belong to {SLO_POLICY}, and the policy is {name}: give --policy"
            f" {SLO_POLICY}, or leave them out"
        )
    return SLO_POLICY


def check_aims(name: str, configs: PolicyConfigs) -> None:
    """Raises ConfigError if `kv_cost_slo` is given nothing to keep."""
    if name == SLO_POLICY and not configs.slo.given:
        raise ConfigError(
            f"{SLO_POLICY} keeps ttft_slo or itl_slo, and neither is given: give one, or the policy"
            f" {DEFAULT_POLICY}"
        )


def check_thresholds(name: str, configs: PolicyConfigs) -> None:
    """Raises ConfigError if cache_aware's thresholds are given where the default rule would run.

    Whoever gives them has SGLang's default in mind, which is cache_aware.
    """
    if name == DEFAULT_POLICY and configs.cache_aware != CacheAwareConfig():
        raise ConfigError(
            "cache_threshold, balance_abs_threshold and balance_rel_threshold belong to"
            f" cache_aware, and the policy is {name}: give --policy cache_aware, or leave them out"
        )
