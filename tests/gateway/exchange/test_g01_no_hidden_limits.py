"""G01: no hidden cap on connections, bodies or the length of a live stream."""

import asyncio
import time

import pytest

from raw_client import request
from scripted_worker import ScriptedWorker, Sleep, answer, chat_answer, events, sse_end, sse_head
from small_gateway import small_gateway
from until import until


@pytest.mark.slow
async def test_g01_150_requests_reach_the_worker_at_once() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [Sleep(3), *chat_answer()]
        began = time.monotonic()
        replies = await asyncio.gather(*(gateway.chat(f"{at}") for at in range(150)))
        took = time.monotonic() - began
        assert {reply.status for reply in replies} == {200}
        assert sum(one.arrived_at - began < 1.0 for one in worker.requests) == 150
        assert took < 5


async def test_g01_a_prompt_of_three_megabytes_gets_through() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        body = {"text": "a" * 3_000_000, "sampling_params": {"max_new_tokens": 1}}
        reply = await gateway.post("/generate", body)
        assert reply.status == 200
        assert worker.requests[0].body == request("/generate", body).partition(b"\r\n\r\n")[2]


@pytest.mark.slow
async def test_g01_a_live_stream_outlives_the_idle_timeout() -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], stream_idle_timeout_secs=1.0) as gateway,
    ):
        texts = [str(at) for at in range(12)]
        worker.script = lambda request: [*sse_head(), *events(*texts, gap_s=0.5), *sse_end()]
        reply = await gateway.chat(stream=True)
        assert len(reply.events) == 12 + 2
        assert reply.events[-1] == b"[DONE]"


@pytest.mark.slow
async def test_g01_a_silent_stream_is_cut_after_the_idle_timeout() -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], stream_idle_timeout_secs=1.0) as gateway,
    ):
        stall = [Sleep(3), *events("c"), *sse_end()]
        worker.script = lambda request: [*sse_head(), *events("a", "b"), *stall]
        began = time.monotonic()
        reply = await gateway.chat(stream=True)
        assert 1.0 <= time.monotonic() - began < 1.6
        assert b"sent nothing for 1 s" in reply.events[2]
        assert reply.events[3] == b"[DONE]"
        await until(lambda: worker.requests[0].connection.closed_at is not None)


async def test_a_worker_without_a_first_byte_is_given_up_for_another() -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other], request_timeout_secs=0.05) as gateway,
    ):
        worker.script = lambda request: [Sleep(5), *answer(b"{}")]
        reply = await gateway.chat_first_at(worker)
        assert reply.status == 200
        assert reply.header("x-radixgate-worker") == f"127.0.0.1:{other.port}"
