"""All settings of a gateway, as its command line, files and environment give them."""

from dataclasses import dataclass, field

from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.policies.registry import PolicyConfigs


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What `radixgate gateway` was started with, or was reread since. Its repr shows no key."""

    config: GatewayConfig = field(default_factory=GatewayConfig)
    policies: PolicyConfigs = field(default_factory=PolicyConfigs)
    rules: GatewayRules = field(default_factory=GatewayRules)
