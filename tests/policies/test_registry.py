"""Policies by name."""

import random

import pytest

from clocks import FakeClock
from radixgate.errors import ConfigError
from radixgate.policies.cache_aware import CacheAwareConfig
from radixgate.policies.registry import (
    DEFAULT_POLICY,
    POLICIES,
    PolicyConfigs,
    check_thresholds,
    make_policy,
)


def test_sglangs_four_names_exist() -> None:
    assert POLICIES.keys() >= {"round_robin", "random", "cache_aware", "power_of_two"}
    assert DEFAULT_POLICY == "kv_cost"
    assert DEFAULT_POLICY in POLICIES


def test_thresholds_without_the_rule_they_belong_to_are_refused() -> None:
    configs = PolicyConfigs(cache_aware=CacheAwareConfig(cache_threshold=0.5))
    with pytest.raises(ConfigError, match="give --policy cache_aware"):
        check_thresholds("kv_cost", configs)
    check_thresholds("cache_aware", configs)
    check_thresholds("kv_cost", PolicyConfigs())


def test_a_misspelt_name_is_told_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'cache_aware'"):
        make_policy("cache-aware", FakeClock(), random.Random(1))
