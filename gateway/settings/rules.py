"""The settings beside the gateway's own: each is off, or harmless, unless it is given."""

import ipaddress
import logging
from dataclasses import dataclass, field

from radixgate.fleet.fleet import FleetConfig
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.experiments_config import ExperimentRules
from radixgate.gateway.settings.header_rules import HeaderConfig
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.observe_config import ObserveConfig
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.tls_config import TlsConfig
from radixgate.log import fields

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GatewayRules:
    """Who may ask, how much, what is made of workers that fail, what the books assume.

    And which headers cross, and what is tried on live traffic.
    """

    access: AccessConfig = field(default_factory=AccessConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    reliability: ReliabilityConfig = field(default_factory=ReliabilityConfig)
    fleet: FleetConfig = field(default_factory=FleetConfig)
    headers: HeaderConfig = field(default_factory=HeaderConfig)
    tls: TlsConfig = field(default_factory=TlsConfig)
    observe: ObserveConfig = field(default_factory=ObserveConfig)
    experiments: ExperimentRules = field(default_factory=ExperimentRules)


NO_RULES = GatewayRules()


def warn_if_open(host: str, access: AccessConfig) -> None:
    """One line in the log where strangers could reach a gateway that asks for no key."""
    if access.api_key or access.api_keys_file or _is_loopback(host):
        return
    _log.warning(
        "listening beyond this machine, and generations need no key; see --api-key",
        extra=fields(host=host),
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
