"""Policies by name."""

import random

import pytest

from clocks import FakeClock
from radixgate.commands import ENTRIES
from radixgate.configs.load import load
from radixgate.errors import ConfigError
from radixgate.policies.cache_aware import CacheAwareConfig
from radixgate.policies.kv_cost import KvCostConfig
from radixgate.policies.prefix_hash import PrefixHashConfig
from radixgate.policies.registry import (
    DEFAULT_POLICY,
    POLICIES,
    PolicyConfigs,
    check_thresholds,
    effective_policy,
    make_policy,
)
from radixgate.policies.settings import policy_configs
from radixgate.policies.slo import SloConfig
from radixgate.policies.sticky import StickyConfig


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


def test_who_asks_for_a_policy_is_told_of_settings_of_another() -> None:
    configs = PolicyConfigs(cache_aware=CacheAwareConfig(balance_abs_threshold=8))
    with pytest.raises(ConfigError, match=r"^cache_threshold, .*kv_cost: give --policy cache_a"):
        effective_policy("kv_cost", configs)


def test_a_misspelt_name_is_told_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'cache_aware'"):
        make_policy("cache-aware", FakeClock(), random.Random(1))
    with pytest.raises(ConfigError, match=r"no policy is called 'xyz'; there are [a-z_, ]+$"):
        make_policy("xyz", FakeClock(), random.Random(1))


def test_what_a_command_is_told_reaches_the_policies() -> None:
    words = ["--cache-threshold", "0.5", "--prefix-hash-tokens", "64", "--sticky-sessions", "7"]
    words += ["--ttft-slo", "0.5", "--kv-cost-pressure-s", "4.5"]
    configs = policy_configs(load(ENTRIES["simulate"].command, words, environ={}))
    assert configs.cache_aware == CacheAwareConfig(cache_threshold=0.5)
    assert configs.prefix_hash == PrefixHashConfig(prefix_hash_tokens=64)
    assert configs.sticky == StickyConfig(sticky_sessions=7)
    assert configs.slo == SloConfig(ttft_slo=0.5)
    assert configs.kv_cost == KvCostConfig(kv_cost_pressure_s=4.5)
