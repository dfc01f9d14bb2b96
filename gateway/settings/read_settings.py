"""From the sections of a command line to the settings of a gateway."""

from dataclasses import replace

from radixgate.configs.load import Settings
from radixgate.fleet.fleet import FleetConfig
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.experiments_config import (
    ExperimentLogConfig,
    ExperimentRules,
    LiveExperimentConfig,
)
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from radixgate.gateway.settings.header_rules import HeaderConfig
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.observe_config import ObserveConfig
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.settings.tls_config import TlsConfig
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
