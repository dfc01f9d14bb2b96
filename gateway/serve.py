"""Running the gateway as a process: from its ready line to its exit code."""

import asyncio
import contextlib
import random
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import uvloop

from radixgate.clock import SystemClock
from radixgate.errors import RadixgateError, RequestError
from radixgate.gateway.choice.own_policy import own_policy
from radixgate.gateway.gateway import Gateway
from radixgate.gateway.observers import Observers, check
from radixgate.gateway.processes.parent import ParentGateway
from radixgate.gateway.reloading import Reloading
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from radixgate.gateway.settings.rules import warn_if_open
from radixgate.kept_heap import keep_heap
from radixgate.open_files import raise_limit
from radixgate.policies.registry import effective_policy
from radixgate.ready_lines import gateway_ready, host_port
from radixgate.spare_collector import spare_collector


class RunningGateway(Protocol):
    """A gateway, in however many processes."""

    @property
    def port(self) -> int: ...

    @property
    def reloading(self) -> Reloading: ...

    async def start(self) -> None: ...

    async def drain(self) -> None: ...

    def reopen_logs(self) -> None: ...

    async def stop(self) -> None: ...


def run_gateway(settings: GatewaySettings, reread: Callable[[], GatewaySettings]) -> int:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends at once. The exit code.

    `reread`: the settings as they are given by then. Raises ConfigError if they cannot work.
    """
    settings = _effective(settings)
    raise_limit()  # children of several processes have it from here
    config, policies, rules = settings.config, settings.policies, settings.rules
    rng = random.Random(config.seed)
    clock = SystemClock()
    own = own_policy(config.policy, policies, clock, rng)
    gateway: RunningGateway
    if config.processes > 1:
        # Who decides and answers is a child; here it is only seen that it can be told of.
        check(rules.observe)
        gateway = ParentGateway(settings, own, clock, rng)
    else:
        observers = Observers(rules.observe, own.rule, clock, policies.slo.aims_s)
        gateway = Gateway(config, own, clock, rng, rules, observers)
    gateway.reloading.read_by(settings, lambda: _effective(reread()))
    warn_if_open(config.host, rules.access)
    return uvloop.run(_serve(gateway, config, rules.tls.scheme))


def _effective(settings: GatewaySettings) -> GatewaySettings:
    """With the policy that really chooses. Raises ConfigError."""
    policy = effective_policy(settings.config.policy, settings.policies)
    return replace(settings, config=replace(settings.config, policy=policy))


async def _serve(gateway: RunningGateway, config: GatewayConfig, scheme: str) -> int:
    stop = asyncio.Event()
    stop_now = asyncio.Event()

    def on_signal() -> None:
        (stop_now if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    reloads: set[asyncio.Task[None]] = set()

    def on_hangup() -> None:
        gateway.reopen_logs()
        reload = loop.create_task(gateway.reloading.by_signal())
        reloads.add(reload)
        reload.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGHUP, on_hangup)
    if not await _started(gateway, stop):
        return 0
    spare_collector()
    keep_heap()
    url = f"{scheme}://{host_port(config.host, gateway.port)}"
    print(f"{gateway_ready(url)} policy={config.policy}", flush=True)
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


async def _started(gateway: RunningGateway, stop: asyncio.Event) -> bool:
    """False: it was told to stop first, and has. Raises what the start raises."""
    starting = asyncio.ensure_future(gateway.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        await gateway.stop()
        return False
    try:
        starting.result()
    except RequestError as error:
        await gateway.stop()
        raise RadixgateError(error.message) from error
    return True
