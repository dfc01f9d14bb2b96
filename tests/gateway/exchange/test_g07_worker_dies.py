"""G07: what a client sees of a worker that dies, before and in the middle of its answer."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import Answer
from scripted_worker import (
    Close,
    Raw,
    Reset,
    ScriptedWorker,
    Sleep,
    Step,
    chunk,
    events,
    sse_end,
    sse_head,
)
from small_gateway import SmallGateway, small_gateway


def parsed(reply: Answer) -> list[dict[str, Any]]:
    return [json.loads(event) for event in reply.events if event != b"[DONE]"]


def text_of(reply: Answer) -> str:
    choices = [choice for event in parsed(reply) for choice in event.get("choices", ())]
    return "".join(choice["delta"]["content"] for choice in choices)


def finishes(reply: Answer) -> list[str]:
    choices = [choice for event in parsed(reply) for choice in event.get("choices", ())]
    return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]


async def failures_of(gateway: SmallGateway, worker: ScriptedWorker) -> float:
    return await gateway.counter(
        "radixgate_worker_failures_total", worker=f"127.0.0.1:{worker.port}"
    )


@pytest.mark.parametrize(
    "end",
    [
        pytest.param([Reset()], id="a-reset"),
        pytest.param([Raw(b"0\r\n\r\n")], id="b-clean-end-without-finish"),
        pytest.param([Close()], id="closed-between-chunks"),
        pytest.param([Raw(b"zz\r\n"), Sleep(1)], id="broken-chunk"),
    ],
)
async def test_g07_after_the_first_byte_one_error_event_and_no_replay(end: Sequence[Step]) -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other]) as gateway,
    ):
        worker.script = lambda request: [*sse_head(), *events("a", "b"), *end]
        reply = await gateway.chat_first_at(worker, stream=True)
        others = len(other.requests)
        assert (reply.status, reply.cut, text_of(reply)) == (200, False, "ab")
        assert len(reply.events) == 4
        error = json.loads(reply.events[2])["error"]
        assert error.keys() == {"message", "type", "param", "code"}
        assert reply.events[3] == b"[DONE]"
        assert finishes(reply) == []
        assert await failures_of(gateway, worker) == 1
        assert await gateway.counter("radixgate_requests_total", outcome="upstream_error") == 1
        assert len(other.requests) == others
        assert gateway.in_flight() == 0


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([], id="the-first"),
        pytest.param([*events("a", "b", gap_s=0.005), Sleep(0.005)], id="of-a-stream-that-flows"),
    ],
)
async def test_g07_an_event_that_was_cut_does_not_swallow_the_error(before: list[Step]) -> None:
    cut = b'data: {"choices":[{"del'
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [*sse_head(), *before, chunk(cut), Reset()]
        reply = await gateway.chat(stream=True)
        assert cut + b'\n\ndata: {"error":' in reply.body
        assert reply.body.count(b"data: {") == len(before) // 2 + 2
        assert reply.body.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    "death",
    [
        pytest.param([Reset()], id="c-before-headers"),
        pytest.param([Close()], id="closed-before-headers"),
        pytest.param([*sse_head(), Reset()], id="d-between-headers-and-events"),
        pytest.param([*sse_head(), Raw(b"0\r\n\r\n")], id="an-empty-stream"),
        pytest.param([Raw(b"SSH-2.0-x\r\n\r\n")], id="not-http"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_g07_before_the_first_byte_another_worker_answers(
    death: Sequence[Step], stream: bool
) -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other]) as gateway,
    ):
        worker.script = lambda request: death
        reply = await gateway.chat_first_at(worker, stream=stream)
        assert (reply.status, reply.cut) == (200, False)
        if stream:
            assert (text_of(reply), finishes(reply)) == ("hello", ["stop"])
        else:
            assert reply.json["choices"][0]["message"]["content"] == "hello"
        assert len(worker.requests) == 1
        assert reply.header("x-radixgate-worker") == f"127.0.0.1:{other.port}"
        ids = {record.header("x-request-id") for record in (worker.requests[0], other.requests[-1])}
        assert ids == {reply.header("x-request-id")}
        assert await failures_of(gateway, worker) == 1
        assert await gateway.counter("radixgate_requests_total", outcome="upstream_error") == 0


async def test_a_whole_answer_that_is_cut_becomes_an_error() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n"
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [Raw(head + b'{"choices":'), Reset()]
        reply = await gateway.chat()
        assert (reply.status, reply.json["error"]["type"]) == (502, "upstream_error")


async def test_a_large_answer_that_is_cut_is_cut_for_the_client_too() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 200000\r\n\r\n"
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [Raw(head + b"x" * 150_000), Sleep(0.05), Reset()]
        reply = await gateway.chat()
        assert (reply.status, reply.cut) == (200, True)
        assert gateway.in_flight() == 0


async def test_a_good_stream_is_no_failure() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [*sse_head(), *events("a"), *sse_end((3, 1))]
        reply = await gateway.chat(stream=True)
        assert (text_of(reply), finishes(reply), reply.events[-1]) == ("a", ["stop"], b"[DONE]")
        assert await gateway.counter("radixgate_requests_total", outcome="ok") == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_g07_half_an_answer_is_none_also_where_nobody_is_left_to_ask(stream: bool) -> None:
    rules = GatewayRules(reliability=ReliabilityConfig(cb_failure_threshold=1))
    length = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n"
    beginning = sse_head() if stream else [Raw(length + b'{"choices":')]
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules, health_check_interval_secs=60.0) as gateway,
    ):
        worker.script = lambda request: [*beginning, Sleep(0.01), Close()]
        reply = await gateway.chat(stream=stream)
        assert (reply.status, reply.json["error"]["type"]) == (502, "upstream_error")
        assert len(worker.requests) == 1
        assert await gateway.counter("radixgate_requests_total", outcome="upstream_error") == 1
