"""From the sections of a command line to the settings of a gateway."""

from dataclasses import replace

from radixgate.configs.load import Settings
from radixgate.fleet.fleet import FleetConfig
from radixgate.gateway.access_config import AccessConfig
from radixgate.gateway.config import GatewayConfig
from radixgate.gateway.experiments.config import (
    ExperimentLogConfig,
    ExperimentRules,
    LiveExperimentConfig,
)
from radixgate.gateway.header_rules import HeaderConfig
from radixgate.gateway.limits_config import LimitsConfig
from radixgate.gateway.observe_config import ObserveConfig
from radixgate.gateway.reliability_config import ReliabilityConfig
from radixgate.gateway.rules import GatewayRules
from radixgate.gateway.settings import GatewaySettings
from radixgate.gateway.tls_config import TlsConfig
from radixgate.policies.settings import policy_configs
from radixgate.radix_mirror.mirror import MirrorConfig


def gateway_settings(settings: Settings) -> GatewaySettings:
    """Raises TypeError if the command has not all the sections of a gateway."""
    policies = policy_configs(settings)
    rules = GatewayRules(
        settings.of(AccessConfig),
        settings.of(LimitsConfig),
        settings.of(ReliabilityConfig),
        replace(settings.of(FleetConfig), mirror=settings.of(MirrorConfig)),
        settings.of(HeaderConfig),
        tls=settings.of(TlsConfig),
        observe=settings.of(ObserveConfig),
        experiments=ExperimentRules(
            settings.of(ExperimentLogConfig), settings.named_of(LiveExperimentConfig), policies
        ),
    )
    return GatewaySettings(settings.of(GatewayConfig), policies, rules)


def read_again(settings: Settings) -> GatewaySettings:
    """As the files say by now. Raises ConfigError."""
    assert settings.again is not None, "a command line can be read again"
    return gateway_settings(settings.again())
