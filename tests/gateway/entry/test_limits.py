"""Concurrency is held to the last byte; who cannot be taken hears 429 or 503 and when to retry."""

import asyncio
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from radixgate.gateway.observe.metrics import FinalOutcome
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import Answer, RawClient, ask, request
from scripted_worker import Await, Hang, Reset, ScriptedWorker, Step, events, sse_end, sse_head
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import PATIENCE_S, until
from virtual_time import LoopClock, in_virtual_time


def at_most(most: int, **more: float) -> GatewayRules:
    return GatewayRules(limits=LimitsConfig(max_concurrent_requests=most, **more))  # type: ignore[arg-type]


async def chats(gateway: SmallGateway, number: int) -> list[Answer]:
    return await asyncio.gather(*(gateway.chat(stream=True) for _ in range(number)))


async def test_no_more_run_than_may_and_every_one_is_answered() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=at_most(4)) as gateway:
        running = most = 0

        worker.script = lambda request: [*sse_head(), *events(*"abc", gap_s=0.01), *sse_end()]
        metrics = gateway.gateway.metrics
        asked = asyncio.create_task(chats(gateway, 20))
        while not asked.done():
            running = metrics.in_flight
            most = max(most, running)
            await asyncio.sleep(0.001)
        assert {reply.status for reply in asked.result()} == {200}
        assert {len(reply.events) for reply in asked.result()} == {5}
        assert most == 4
        assert metrics.in_flight == 0
        assert metrics.requests[FinalOutcome.OK] == 20
        assert await gateway.counter("radixgate_queue_waiting") == 0


async def test_beyond_the_queue_it_is_429_with_the_time_to_retry() -> None:
    rules = at_most(1, queue_size=2)
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        word = asyncio.Event()
        worker.script = lambda request: [*sse_head(), *events("a"), Await(word), *sse_end()]
        asking = [asyncio.create_task(gateway.chat(stream=True)) for _ in range(8)]
        await until(lambda: sum(one.done() for one in asking) == 5)
        word.set()
        replies = await asyncio.gather(*asking)
        statuses = sorted(reply.status for reply in replies)
        assert statuses == [200] * 3 + [429] * 5
        refused = next(reply for reply in replies if reply.status == 429)
        assert refused.header("retry-after") == "1"
        assert refused.json["error"]["type"] == "rate_limit_error"
        assert gateway.gateway.metrics.requests[FinalOutcome.REJECTED] == 5
        assert len(worker.requests) == 3


@in_virtual_time
async def test_who_waits_too_long_hears_503_and_who_leaves_frees_the_line() -> None:
    rules, clock = at_most(1, queue_size=1, queue_timeout_secs=0.2), LoopClock()
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules, clock=clock) as gateway,
    ):
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        metrics = gateway.gateway.metrics
        async with RawClient(gateway.port) as first:
            first.send(request(CHAT, chat_body(stream=True)))
            await until(lambda: len(worker.requests) == 1)
            async with RawClient(gateway.port) as second:
                second.send(request(CHAT, chat_body()))
                await until(lambda: metrics.read_waiting() == 1)
            await until(lambda: metrics.read_waiting() == 0)
            late = await gateway.chat()
            assert (late.status, late.header("retry-after")) == (503, "1")
        await until(lambda: metrics.in_flight == 0)
        worker.script = lambda request: [*sse_head(), *sse_end()]
        assert (await gateway.chat(stream=True)).status == 200
        assert metrics.requests == {
            FinalOutcome.OK: 1,
            FinalOutcome.CLIENT_ERROR: 0,
            FinalOutcome.UPSTREAM_ERROR: 0,
            FinalOutcome.CLIENT_DISCONNECT: 2,
            FinalOutcome.REJECTED: 1,
        }


async def test_bad_requests_and_errors_give_their_place_back() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=at_most(1)) as gateway:
        for _ in range(3):
            assert (await gateway.post(CHAT, {"messages": 3})).status == 400
        assert (await gateway.chat()).status == 200


async def test_the_more_urgent_overtake_those_that_wait() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=at_most(1)) as gateway:
        word = asyncio.Event()
        worker.script = lambda request: [*sse_head(), Await(word), *events("a"), *sse_end()]
        tasks = []

        def all_there(waiting: int) -> bool:
            there = len(worker.requests), gateway.gateway.metrics.read_waiting()
            return there == (1, waiting)

        for number, priority in enumerate((0, 0, 7)):
            body = chat_body(stream=True, priority=priority, number=number)
            tasks.append(asyncio.create_task(gateway.post(CHAT, body)))
            await until(partial(all_there, number))
        word.set()
        await asyncio.gather(*tasks)
        assert [one.json["number"] for one in worker.requests] == [0, 2, 1]


async def test_a_tenant_over_its_rate_hears_429_and_the_others_nothing(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    lines = [
        f"  - {{sha256: {sha256(name.encode()).hexdigest()}, tenant: {name}, {more}}}"
        for name, more in (("red", "requests_per_minute: 2"), ("blue", "models: [toy]"))
    ]
    file.write_text("\n".join(["keys:", *lines]))
    rules = GatewayRules(AccessConfig(api_keys_file=str(file)))
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        red, blue = "Authorization: Bearer red", "Authorization: Bearer blue"
        statuses = [(await gateway.post(CHAT, chat_body(), red)).status for _ in range(3)]
        assert statuses == [200, 200, 429]
        reply = await gateway.post(CHAT, chat_body(), red)
        assert 25 <= int(reply.header("retry-after") or 0) <= 30
        for _ in range(4):
            assert (await gateway.post(CHAT, chat_body(), blue)).status == 200
        assert len(worker.requests) == 6


@pytest.mark.parametrize(
    ("how", "end"),
    [
        pytest.param("leave", [Hang()], id="the-client-leaves"),
        pytest.param("read", [Reset()], id="the-worker-dies"),
        pytest.param("read", sse_end(), id="no-counts-are-told"),
    ],
)
async def test_what_came_of_a_stream_is_charged_however_it_ended(
    how: str, end: Sequence[Step]
) -> None:
    # A request is guessed at 70 tokens, so that without the answers' 80 two would find room.
    rules = GatewayRules(limits=LimitsConfig(tenant_tokens_per_minute=150))
    asked = request(CHAT, chat_body("x" * 200, stream=True))
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        worker.script = lambda request: [*sse_head(), *events(*"abcdefgh" * 10), *end]
        async with RawClient(gateway.port) as client:
            client.send(asked)
            if how == "leave":
                async with asyncio.timeout(PATIENCE_S):
                    for _ in range(10):
                        await client.reader.readuntil(b'"h"')
                await asyncio.sleep(0.02)
            else:
                await client.answer()
        await until(lambda: gateway.gateway.metrics.in_flight == 0)
        reply = await ask(gateway.port, asked)
        assert reply.status == 429
        assert 25 <= int(reply.header("retry-after") or 0) <= 32
