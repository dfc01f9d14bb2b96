"""What only a gateway of one process can do, and how one of several refuses it."""

from aiohttp import web

from radixgate.errors import ConfigError, RequestError
from radixgate.gateway.settings.gateway_settings import GatewaySettings

_WHY = (
    "experiments divide the traffic of one process, and this gateway has {count}:"
    " leave --processes out"
)


def check_one_process(settings: GatewaySettings) -> None:
    """Raises ConfigError if several processes are asked for what only one can do."""
    count = settings.config.processes
    if count > 1 and settings.rules.experiments.declared:
        raise ConfigError(_WHY.format(count=count))


def refused_routes(count: int) -> list[web.RouteDef]:
    """Instead of those of experiments."""

    async def refuse(request: web.Request) -> web.Response:
        raise RequestError(_WHY.format(count=count), code="one_process_only")

    return [web.route("*", "/experiments{rest:.*}", refuse)]
