"""G01: no hidden cap on connections, bodies or the length of a live stream."""

import asyncio

import pytest

from raw_client import request
from scripted_worker import (
    Await,
    ScriptedWorker,
    Sleep,
    answer,
    chat_answer,
    events,
    sse_end,
    sse_head,
)
from small_gateway import small_gateway
from until import until
from virtual_time import LoopClock, in_virtual_time


@pytest.mark.slow
async def test_g01_150_requests_reach_the_worker_at_once() -> None:
    word = asyncio.Event()
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [Await(word), *chat_answer()]
        asking = [asyncio.create_task(gateway.chat(f"{at}")) for at in range(150)]
        # None is answered before all are there.
        await until(lambda: len(worker.requests) == 150)
        assert gateway.in_flight() == 150
        word.set()
        assert {reply.status for reply in await asyncio.gather(*asking)} == {200}


async def test_g01_a_prompt_of_three_megabytes_gets_through() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        body = {"text": "a" * 3_000_000, "sampling_params": {"max_new_tokens": 1}}
        reply = await gateway.post("/generate", body)
        assert reply.status == 200
        assert worker.requests[0].body == request("/generate", body).partition(b"\r\n\r\n")[2]


@pytest.mark.slow
@in_virtual_time
async def test_g01_a_live_stream_outlives_the_idle_timeout() -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], clock=LoopClock(), stream_idle_timeout_secs=1.0) as gateway,
    ):
        texts = [str(at) for at in range(12)]
        worker.script = lambda request: [*sse_head(), *events(*texts, gap_s=0.5), *sse_end()]
        reply = await gateway.chat(stream=True)
        assert len(reply.events) == 12 + 2
        assert reply.events[-1] == b"[DONE]"


@pytest.mark.slow
@in_virtual_time
async def test_g01_a_silent_stream_is_cut_after_the_idle_timeout() -> None:
    clock = LoopClock()
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], clock=clock, stream_idle_timeout_secs=1.0) as gateway,
    ):
        stall = [Sleep(3), *events("c"), *sse_end()]
        worker.script = lambda request: [*sse_head(), *events("a", "b"), *stall]
        began = clock.now()
        reply = await gateway.chat(stream=True)
        assert 1.0 <= clock.now() - began < 1.2  # it is looked for ten times a second
        assert b"sent nothing for 1 s" in reply.events[2]
        assert reply.events[3] == b"[DONE]"
        await until(lambda: worker.requests[0].connection.closed_at is not None)


@in_virtual_time
async def test_a_worker_without_a_first_byte_is_given_up_for_another() -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other], clock=LoopClock(), request_timeout_secs=0.05) as gateway,
    ):
        worker.script = lambda request: [Sleep(5), *answer(b"{}")]
        reply = await gateway.chat_first_at(worker)
        assert reply.status == 200
        assert reply.header("x-radixgate-worker") == f"127.0.0.1:{other.port}"
