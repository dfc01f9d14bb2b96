"""Running the gateway as a process: from its ready line to its exit code."""

import asyncio
import contextlib
import random
import signal
from typing import Protocol

import uvloop

from radixgate.clock import SystemClock
from radixgate.errors import RadixgateError, RequestError
from radixgate.gateway.config import GatewayConfig
from radixgate.gateway.gateway import Gateway
from radixgate.gateway.process_parent import ParentGateway
from radixgate.gateway.rules import NO_RULES, GatewayRules, warn_if_open
from radixgate.gateway.settings import GatewaySettings
from radixgate.gateway.spare_collector import spare_collector
from radixgate.policies.registry import PolicyConfigs, check_thresholds, make_policy
from radixgate.ready_lines import gateway_ready


class Served(Protocol):
    """A gateway, in however many processes."""

    @property
    def port(self) -> int: ...

    async def start(self) -> None: ...

    async def drain(self) -> None: ...

    async def stop(self) -> None: ...


def run_gateway(
    config: GatewayConfig, policies: PolicyConfigs | None = None, rules: GatewayRules = NO_RULES
) -> int:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends at once. The exit code.

    Raises ConfigError if the settings cannot work.
    """
    rng = random.Random(config.seed)
    clock = SystemClock()
    policies = policies or PolicyConfigs()
    check_thresholds(config.policy, policies)
    policy = make_policy(config.policy, clock, rng, policies)
    gateway: Served
    if config.processes > 1:
        settings = GatewaySettings(config, policies, rules)
        gateway = ParentGateway(settings, policy, clock, rng)
    else:
        gateway = Gateway(config, policy, clock, rng, rules)
    warn_if_open(config.host, rules.access)
    return uvloop.run(_serve(gateway, config))


async def _serve(gateway: Served, config: GatewayConfig) -> int:
    stop = asyncio.Event()
    stop_now = asyncio.Event()

    def on_signal() -> None:
        (stop_now if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        await gateway.start()
    except RequestError as error:
        await gateway.stop()
        raise RadixgateError(error.message) from error
    spare_collector()
    host = f"[{config.host}]" if ":" in config.host else config.host
    print(
        f"{gateway_ready(f'http://{host}:{gateway.port}')} policy={config.policy}",
        flush=True,
    )
    await stop.wait()
    draining = asyncio.create_task(gateway.drain())
    at_once = asyncio.create_task(stop_now.wait())
    await asyncio.wait((draining, at_once), return_when=asyncio.FIRST_COMPLETED)
    for task in (draining, at_once):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await gateway.stop()
    return 0
