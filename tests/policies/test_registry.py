"""Policies by name."""

import random

import pytest

from clocks import FakeClock
from radixgate.errors import ConfigError
from radixgate.policies.registry import DEFAULT_POLICY, POLICIES, make_policy


def test_sglangs_four_names_exist() -> None:
    assert POLICIES.keys() >= {"round_robin", "random", "cache_aware", "power_of_two"}
    assert DEFAULT_POLICY in POLICIES


def test_a_misspelt_name_is_told_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'cache_aware'"):
        make_policy("cache-aware", FakeClock(), random.Random(1))
