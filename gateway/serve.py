"""Running the gateway as a process: from its ready line to its exit code."""

import asyncio
import contextlib
import gc
import random
import signal

import uvloop

from radixgate.clock import SystemClock
from radixgate.errors import RadixgateError, RequestError
from radixgate.gateway.config import GatewayConfig
from radixgate.gateway.gateway import Gateway
from radixgate.gateway.rules import NO_RULES, GatewayRules, warn_if_open
from radixgate.policies.registry import PolicyConfigs, check_thresholds, make_policy
from radixgate.ready_lines import gateway_ready

# A running request has about a hundred.
_COLLECT_AFTER_OBJECTS = 10_000


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
    gateway = Gateway(config, policy, clock, rng, rules)
    warn_if_open(config.host, rules.access)
    return uvloop.run(_serve(gateway, config))


def _spare_collector() -> None:
    """What is there at the start stays: it is not looked at again in each collection.

    Cycles among requests are few, and may wait for more company.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER_OBJECTS, 10, 10)


async def _serve(gateway: Gateway, config: GatewayConfig) -> int:
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
    _spare_collector()
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
