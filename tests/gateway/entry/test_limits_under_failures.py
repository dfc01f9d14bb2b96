"""Everything at once: limits, breakers and retries over a worker that dies again and again."""

import asyncio
import random
from collections.abc import Callable

import pytest

from radixgate.gateway.observe.metrics import FinalOutcome
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import RawClient, request
from scripted_worker import ScriptedWorker, events, sse_end, sse_head
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import until

RULES = GatewayRules(
    AccessConfig(api_key="k"),
    LimitsConfig(max_concurrent_requests=16, queue_size=20, tenant_requests_per_minute=1e6),
    ReliabilityConfig(cb_failure_threshold=3, cb_timeout_duration_secs=0.1, slow_start_secs=0.2),
)
KEY = "Authorization: Bearer k"


async def client(gateway: SmallGateway, rng: random.Random, statuses: list[int]) -> None:
    """Thirty requests; of some it does not wait for the answer."""
    for _ in range(30):
        data = request(CHAT, chat_body(stream=True), headers=(KEY,))
        async with RawClient(gateway.port) as connection:
            connection.send(data)
            if rng.random() < 0.2:
                await asyncio.sleep(rng.random() * 0.02)
                continue
            reply = await connection.answer()
            statuses.append(reply.status)
            if reply.status == 200:
                assert reply.events[-1] == b"[DONE]"
                assert len(reply.events) == 4 or b'"error"' in reply.events[-2]


async def dying(worker: ScriptedWorker, attempts: Callable[[], int]) -> None:
    """It goes, and comes again, with every twenty attempts at any worker."""
    while True:
        for change in (worker.stop, worker.start):
            seen = attempts()
            while attempts() < seen + 20:  # noqa: ASYNC110  # to the last request
                await asyncio.sleep(0.001)
            await change()


@pytest.mark.slow
async def test_every_request_ends_once_and_every_count_returns_to_nothing() -> None:
    workers = [await ScriptedWorker().start() for _ in range(3)]
    async with small_gateway(workers, rules=RULES) as gateway:
        for worker in workers:
            worker.script = lambda request: [
                *sse_head(),
                *events("a", "b", gap_s=0.004),
                *sse_end(),
            ]
        killer = asyncio.create_task(dying(workers[0], lambda: gateway.gateway.metrics.attempts))
        statuses: list[int] = []
        rng = random.Random(3)
        await asyncio.gather(*(client(gateway, rng, statuses) for _ in range(40)))
        killer.cancel()
        metrics = gateway.gateway.metrics
        await until(lambda: metrics.in_flight == 0 and metrics.read_waiting() == 0)
        assert gateway.in_flight() == 0
        gateway.gateway.choice.check()
        assert set(statuses) <= {200, 429, 502, 503}
        assert statuses.count(200) > 300
        requests = metrics.requests
        # A client that leaves before its request was read is nobody's.
        assert len(statuses) <= sum(requests.values()) <= 1_200
        assert requests[FinalOutcome.OK] + requests[FinalOutcome.UPSTREAM_ERROR] >= statuses.count(
            200
        )
        for _ in range(40):
            assert (await gateway.post(CHAT, chat_body(stream=True), KEY)).status == 200
    for worker in workers:
        await worker.stop()
