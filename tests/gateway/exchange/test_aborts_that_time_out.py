"""What is aborted by order and does not end by itself is ended, and is run nowhere else."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from raw_client import Answer, RawClient, request
from scripted_worker import (
    Await,
    Hang,
    Raw,
    ScriptedWorker,
    Step,
    events,
    json_answer,
    sse_head,
)
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import until
from virtual_time import LoopClock, in_virtual_time

Workers = tuple[ScriptedWorker, ScriptedWorker]
BEGUN = [
    pytest.param([], id="unanswered"),
    pytest.param(sse_head(), id="only-a-head"),
    pytest.param([*sse_head(), *events("a")], id="begun"),
]
HEAD = b"HTTP/1.1 500 Oh\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


@asynccontextmanager
async def two_workers() -> AsyncIterator[tuple[SmallGateway, Workers]]:
    """Whose silence is borne for half a second."""
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as other,
        small_gateway(
            [one, other],
            clock=LoopClock(),
            request_timeout_secs=0.5,
            stream_idle_timeout_secs=0.5,
            health_check_interval_secs=60.0,
        ) as gateway,
    ):
        yield gateway, (one, other)


async def aborted(
    gateway: SmallGateway,
    workers: Workers,
    steps: Sequence[Step],
    *,
    taken: bool = True,
    remove: bool = False,
) -> Answer:
    """What the client gets of the one who runs it, by `steps`, which may wait for the order."""
    told = asyncio.Event()

    def take(_: object) -> list[Step]:
        told.set()
        return json_answer({}, 200 if taken else 404)

    for worker in workers:
        worker.admin["/abort_request"] = take
        worker.script = lambda request: [
            Await(told) if isinstance(step, Await) else step for step in steps
        ]
    async with RawClient(gateway.port) as client:
        client.send(request(CHAT, chat_body(stream=True, rid="mine")))
        await until(lambda: sum(len(worker.requests) for worker in workers) == 1)
        await asyncio.sleep(0.1)  # until all that has been sent is read
        await gateway.post("/abort_request", {"rid": "mine"})
        if remove:
            gateway.gateway.workers.drain_s = 0.0
            (runs,) = [worker for worker in workers if worker.requests]
            await gateway.delete(f"/workers/127.0.0.1:{runs.port}")
        return await client.answer()


async def check_it_ended_as_told(gateway: SmallGateway, workers: Workers, answer: Answer) -> None:
    assert (answer.status, answer.cut, answer.events[-1]) == (200, False, b"[DONE]")
    assert answer.body.count(b'"finish_reason":"abort"') == 1
    assert sum(len(worker.requests) for worker in workers) == 1
    assert await gateway.counter("radixgate_retries_total") == 0
    assert await gateway.counter("radixgate_requests_total", outcome="ok") == 1
    for worker in workers:
        name = f"127.0.0.1:{worker.port}"
        assert await gateway.counter("radixgate_worker_failures_total", worker=name) == 0
    assert gateway.in_flight() == 0


@pytest.mark.parametrize("begun", BEGUN)
@in_virtual_time
async def test_what_its_worker_is_silent_about(begun: Sequence[Step]) -> None:
    async with two_workers() as (gateway, workers):
        answer = await aborted(gateway, workers, [*begun, Hang()])
        await check_it_ended_as_told(gateway, workers, answer)


@pytest.mark.parametrize("begun", BEGUN)
@in_virtual_time
async def test_what_its_worker_is_removed_under(begun: Sequence[Step]) -> None:
    async with two_workers() as (gateway, workers):
        answer = await aborted(gateway, workers, [*begun, Hang()], remove=True)
        await check_it_ended_as_told(gateway, workers, answer)


@in_virtual_time
async def test_what_was_told_within_an_error() -> None:
    """Between its head and its end."""
    steps: list[Step] = [Raw(HEAD % 2), Await(asyncio.Event()), Raw(b"{}")]
    async with two_workers() as (gateway, workers):
        answer = await aborted(gateway, workers, steps)
        await check_it_ended_as_told(gateway, workers, answer)


@in_virtual_time
async def test_an_error_that_goes_out_already_stays_whole() -> None:
    body = b"x" * 70_000
    steps: list[Step] = [Raw(HEAD % 70_001 + body), Await(asyncio.Event()), Raw(b"x")]
    async with two_workers() as (gateway, workers):
        answer = await aborted(gateway, workers, steps)
        assert (answer.status, answer.cut, answer.body) == (500, False, body + b"x")
        assert sum(len(worker.requests) for worker in workers) == 1


@in_virtual_time
async def test_what_its_worker_would_not_end_is_run_elsewhere() -> None:
    """It has failed by its silence alone."""
    async with two_workers() as (gateway, workers):
        await aborted(gateway, workers, [Hang()], taken=False)
        assert sum(len(worker.requests) for worker in workers) == 3
