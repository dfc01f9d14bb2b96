"""A gateway whose settings are read again."""

from collections.abc import Callable

from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from small_gateway import QUICK, SmallGateway


def readable(
    gateway: SmallGateway, first: GatewaySettings, now: Callable[[], GatewaySettings]
) -> None:
    """The gateway was made by `first`, and reads `now` on a reload."""
    gateway.gateway.reloading.read_by(first, now)


def quick(**knobs: object) -> GatewayConfig:
    return GatewayConfig(**{"port": 0, "seed": 7, **QUICK, **knobs})  # type: ignore[arg-type]
