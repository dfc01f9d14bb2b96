"""The policies of an experiment's arms: by name, with settings of their own."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from radixgate.analysis.experiments.records import Arm, Setting
from radixgate.clock import Clock
from radixgate.configs.declare import Knob, knobs_of
from radixgate.configs.spelling import nearest
from radixgate.configs.values import Given, value_of
from radixgate.errors import ConfigError
from radixgate.fleet.rule import RuledPolicy
from radixgate.gateway.choice.own_policy import own_policy
from radixgate.policies.registry import (
    DEFAULT_POLICY,
    SLO_POLICY,
    PolicyConfigs,
    check_aims,
)


class ArmPolicies:
    """Makes the policy of an arm, anew each time: nothing of an earlier block is in it."""

    def __init__(self, configs: PolicyConfigs, own: str, clock: Clock, rng: random.Random) -> None:
        """`own` is the gateway's policy, and `configs` the settings it was given."""
        self._configs = configs
        self._clock = clock
        self._rng = rng
        self.own = own

    def change(self, configs: PolicyConfigs, own: str) -> None:
        """The gateway's settings were read again."""
        self._configs = configs
        self.own = own

    def as_now(self) -> "ArmPolicies":
        """What changes later does not change the arms that are made by this one."""
        return ArmPolicies(self._configs, self.own, self._clock, self._rng)

    def arm(self, name: str, policy: str | None, settings: Sequence[str]) -> Arm:
        """Raises ConfigError for a policy or setting that does not exist, or cannot be so."""
        policy = policy or self.own
        self.make(Arm(name, policy))
        arm = Arm(name, policy, self._typed(policy, _values(settings)))
        check_aims(policy, self._configs_of(arm))
        self.make(arm)
        return arm

    def make(self, arm: Arm) -> RuledPolicy:
        """Raises ConfigError as `arm`."""
        return own_policy(arm.policy, self._configs_of(arm), self._clock, self._rng)

    def _configs_of(self, arm: Arm) -> PolicyConfigs:
        configs = self._configs
        for section in self._sections(arm.policy):
            config = getattr(configs, section)
            known = {knob.name for knob in knobs_of(type(config))}
            own = {name: value for name, value in arm.settings.items() if name in known}
            configs = replace(configs, **{section: replace(config, **own)})
        return configs

    def _typed(self, policy: str, values: Mapping[str, Given]) -> Mapping[str, Setting]:
        known = self._knobs(policy)
        typed: dict[str, Setting] = {}
        for key, given in values.items():
            if key not in known:
                hint = f"nearest is {nearest(key, known)}" if known else "it has none"
                raise ConfigError(f"{policy:.50} has no setting {key!r:.100}; {hint}")
            value = value_of(known[key], given)
            assert value is None or isinstance(value, str | int | float | bool)
            typed[key] = value
        return typed

    def _knobs(self, policy: str) -> Mapping[str, Knob]:
        return {
            knob.name: knob
            for section in self._sections(policy)
            for knob in knobs_of(type(getattr(self._configs, section)))
        }

    def _sections(self, policy: str) -> Sequence[str]:
        """A policy's settings stand under its name; one without has none."""
        if policy == SLO_POLICY:
            return DEFAULT_POLICY, "slo"
        return [field.name for field in fields(self._configs) if field.name == policy]


def _values(settings: Sequence[str]) -> Mapping[str, Given]:
    values = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        key = name.strip().replace("-", "_")
        if not (key and equals):
            raise ConfigError(f"{setting!r:.100}: write it as name=value")
        if key in values:
            raise ConfigError(f"{key:.100} is set twice")
        values[key] = Given(value.strip(), key)
    return values
