"""What the simulator can be asked to compare: our policies, and others that only it knows."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from radixgate.clock import Clock
from radixgate.errors import ConfigError
from radixgate.loadgen.simulator.foreign_rules import (
    DynamoCost,
    FewestQueuedTokens,
    LlmdScorer,
    LlmdSticky,
    SglangCacheAware,
)
from radixgate.loadgen.simulator.truth import Truth
from radixgate.policies.base import Policy
from radixgate.policies.cache_aware import CacheAwareConfig
from radixgate.policies.registry import (
    SLO_POLICY,
    PolicyConfigs,
    check_aims,
    make_policy,
    policy_names,
    unknown_policy,
)

# A tree of 2 ** 26 characters a worker, at four a token; the mirror is twice as generous itself.
_SGLANG_TREE_TOKENS = 2**26 // 4 // 2


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy by name, and what kind of fleet it runs over."""

    make: Callable[[Truth, Clock, random.Random], Policy]
    shared_cache: bool = False  # one cache of the total size for all workers
    events: bool = True  # False: it knows of caches only what it sent there itself
    believed_tokens: int | None = None  # without events: the most it believes; None: the capacity


_FOREIGN: Mapping[str, Rule] = MappingProxyType(
    {
        "oracle": Rule(lambda truth, clock, rng: FewestQueuedTokens(truth, rng), shared_cache=True),
        "sglang_cache_aware": Rule(
            lambda truth, clock, rng: SglangCacheAware(rng),
            events=False,
            believed_tokens=_SGLANG_TREE_TOKENS,
        ),
        "dynamo_cost": Rule(lambda truth, clock, rng: DynamoCost(truth, rng)),
        "llmd_scorer": Rule(lambda truth, clock, rng: LlmdScorer(truth, rng)),
        "llmd_sticky": Rule(lambda truth, clock, rng: LlmdSticky(rng)),
    }
)


def rules_named(names: Sequence[str], configs: PolicyConfigs) -> Mapping[str, Rule]:
    """Raises ConfigError, too, for aims and thresholds that none of them would look at."""
    for name in names:
        check_aims(name, configs)
    if configs.slo.given and SLO_POLICY not in names:
        raise ConfigError(
            f"ttft_slo and itl_slo belong to {SLO_POLICY}: name it among --policies, or leave them"
            " out"
        )
    if configs.cache_aware != CacheAwareConfig() and "cache_aware" not in names:
        raise ConfigError(
            "cache_threshold, balance_abs_threshold and balance_rel_threshold belong to"
            " cache_aware: name it among --policies, or leave them out"
        )
    return {name: rule_named(name, configs) for name in names}


def rule_named(name: str, configs: PolicyConfigs) -> Rule:
    """Raises ConfigError, with the nearest name, if there is none."""
    if name in _FOREIGN:
        return _FOREIGN[name]
    if name in policy_names():
        return Rule(lambda truth, clock, rng: make_policy(name, clock, rng, configs))
    raise unknown_policy(name, rule_names())


def rule_names() -> Sequence[str]:
    return [*policy_names(), *_FOREIGN]
