"""Settings that every decision reckons with are numbers that have an end."""

import dataclasses
import math
import re

import pytest

from radixgate.configs.declare import knobs_of
from radixgate.errors import ConfigError
from radixgate.fleet.fleet_config import FleetConfig
from radixgate.policies.cache_aware import CacheAwareConfig
from radixgate.policies.kv_cost import KvCostConfig
from radixgate.policies.prefix_hash import PrefixHashConfig
from radixgate.policies.slo import SloConfig
from radixgate.policies.sticky import StickyConfig

FLOATS = [
    (config, knob.name)
    for config in (
        CacheAwareConfig,
        FleetConfig,
        KvCostConfig,
        PrefixHashConfig,
        SloConfig,
        StickyConfig,
    )
    for knob in knobs_of(config)
    if knob.type is float
]


def test_the_weights_of_costs_are_among_them() -> None:
    assert (KvCostConfig, "kv_cost_stall_weight") in FLOATS
    assert len(FLOATS) == 14


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e300])
@pytest.mark.parametrize(("config", "name"), FLOATS)
def test_a_number_without_an_end_is_refused_by_its_name(
    config: type, name: str, value: float
) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{name} is {value:g}, it must be a")):
        config(**{name: value})


@pytest.mark.parametrize("config", sorted({config for config, _ in FLOATS}, key=str))
def test_the_defaults_are_such_numbers(config: type) -> None:
    assert dataclasses.is_dataclass(config())


@pytest.mark.parametrize("speed", [0.0, -1.0])
def test_a_speed_that_is_guessed_is_over_nought(speed: float) -> None:
    with pytest.raises(ConfigError, match=r"^prefill_speed_guess is -?\d tokens/s, it must be ove"):
        FleetConfig(prefill_speed_guess=speed)
