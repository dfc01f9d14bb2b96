"""A whole gateway inside the test's own event loop, reached over sockets like any other."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from radixgate.clock import Clock, SystemClock
from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.choice.own_policy import own_policy
from radixgate.gateway.gateway import Gateway
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.rules import NO_RULES, GatewayRules
from radixgate.policies.cache_aware import CacheAwareConfig
from radixgate.policies.registry import PolicyConfigs
from raw_client import Answer, ask, request
from scripted_worker import ScriptedWorker
from until import until

CHAT = "/v1/chat/completions"
QUICK = {
    "health_check_interval_secs": 0.05,
    "retry_initial_backoff_ms": 1.0,
    "retry_max_retries": 2,
    "policy": "round_robin",
}


class SmallGateway:
    """What a test asks of the gateway it runs."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.port = gateway.port

    async def ready(self, workers: int) -> None:
        """Wait until so many workers are ready."""
        await until(lambda: len(self.gateway.workers.ready()) == workers)

    async def chat(self, text: str = "hi", **fields: object) -> Answer:
        return await self.post(CHAT, chat_body(text, **fields))

    async def chat_first_at(self, worker: ScriptedWorker, **fields: object) -> Answer:
        """Ask until the rotation comes to `worker`; the answer to the request that it got."""
        while True:
            before = len(worker.requests)
            reply = await self.post(CHAT, chat_body("hi", **fields))
            if len(worker.requests) > before:
                return reply

    async def post(self, path: str, body: bytes | object, *headers: str) -> Answer:
        return await ask(self.port, request(path, body, headers=headers))

    async def get(self, path: str, *headers: str) -> Answer:
        return await ask(self.port, request(path, method="GET", headers=headers))

    async def put(self, path: str, body: object, *headers: str) -> Answer:
        return await ask(self.port, request(path, body, method="PUT", headers=headers))

    async def delete(self, path: str, *headers: str) -> Answer:
        return await ask(self.port, request(path, method="DELETE", headers=headers))

    async def counter(self, name: str, **labels: str) -> float:
        """A sample of /metrics; 0 if it is not there."""
        shown = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
        start = f"{name}{{{shown}}} " if labels else f"{name} "
        text = (await self.get("/metrics")).body.decode()
        lines = [line for line in text.splitlines() if line.startswith(start)]
        return float(lines[0].rsplit(" ", 1)[1]) if lines else 0.0

    def in_flight(self) -> int:
        return sum(view.in_flight for view in self.gateway.fleet.workers())

    def state_of(self, worker: ScriptedWorker) -> WorkerState:
        return self.gateway.workers.find(worker.url).state


def chat_body(text: str = "hi", **fields: object) -> dict[str, Any]:
    return {"model": "toy", "messages": [{"role": "user", "content": text}], **fields}


@asynccontextmanager
async def small_gateway(
    workers: Sequence[ScriptedWorker] = (),
    cache_aware: CacheAwareConfig | None = None,
    rules: GatewayRules = NO_RULES,
    clock: Clock | None = None,
    **knobs: object,
) -> AsyncIterator[SmallGateway]:
    """A gateway over `workers`, all of them ready; `knobs` over QUICK. `clock`: None for time as it
    passes."""
    urls = tuple(worker.url for worker in workers)
    settings: dict[str, Any] = {"port": 0, "seed": 7, "worker_urls": urls, **QUICK, **knobs}
    config = GatewayConfig(**settings)
    rng, clock = random.Random(config.seed), clock or SystemClock()
    configs = PolicyConfigs(cache_aware or CacheAwareConfig())
    gateway = Gateway(config, own_policy(config.policy, configs, clock, rng), clock, rng, rules)
    await gateway.start()
    try:
        small = SmallGateway(gateway)
        await small.ready(len(urls))
        yield small
    finally:
        await gateway.stop()
        gateway.fleet.check()
