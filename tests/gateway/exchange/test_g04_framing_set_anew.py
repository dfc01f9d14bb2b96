"""G04: framing is set anew, hop-by-hop headers end here, encoded bytes keep their encoding."""

import gzip
import json

import pytest

from scripted_worker import (
    Close,
    Raw,
    ScriptedWorker,
    Sleep,
    Step,
    answer,
    chunk,
    delta,
    json_answer,
)
from small_gateway import CHAT, chat_body, small_gateway

PLAIN = json.dumps({"ok": "z" * 600}).encode()


@pytest.mark.parametrize("headers", [(), ("Accept-Encoding: gzip",)], ids=["plain", "gzip"])
async def test_g04_an_encoded_answer_keeps_its_encoding(headers: tuple[str, ...]) -> None:
    fields = [
        ("content-encoding", "gzip"),
        ("connection", "keep-alive, X-Hop"),
        ("x-hop", "1"),
        ("x-keep", "2"),
        ("content-type", "application/json"),
    ]
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: answer(gzip.compress(PLAIN), headers=fields)
        reply = await gateway.post(CHAT, chat_body(), *headers)
        assert reply.header("content-encoding") == "gzip"
        assert reply.header("content-length") == str(len(reply.body))
        assert gzip.decompress(reply.body) == PLAIN
        assert (reply.header("x-hop"), reply.header("x-keep")) == (None, "2")
        sent = worker.requests[0].header("accept-encoding")
        assert sent == ("gzip" if headers else None)


@pytest.mark.parametrize("stream", [True, False])
async def test_g04_a_worker_s_refusal_passes_through_whole(stream: bool) -> None:
    body = b'{"error":{"message":"too long"}}'[:31]
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: answer(body, 400)
        reply = await gateway.chat(stream=stream)
        assert (reply.status, reply.body) == (400, body)
        assert reply.header("content-type") == "application/json"
        assert reply.header("content-length") == "31"
        assert await gateway.counter("radixgate_requests_total", outcome="client_error") == 1


async def test_g04_a_chunked_json_answer() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        parts = [chunk(PLAIN[:100]), chunk(PLAIN[100:]), Raw(b"0\r\nx-trailer: 1\r\n\r\n")]
        worker.script = lambda request: [Raw(head), *parts]
        reply = await gateway.chat()
        assert reply.body == PLAIN
        assert reply.header("transfer-encoding") is None
        assert reply.header("content-length") == str(len(PLAIN))


@pytest.mark.parametrize("in_one_piece", [True, False])
async def test_trailers_are_no_headers_of_this_answer_or_of_another(in_one_piece: bool) -> None:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    said = delta("hi", "stop") + b"data: [DONE]\n\n"
    mine = b"%x\r\n%b\r\n0\r\nx-cost: alice\r\nset-cookie: s=alice\r\n\r\n" % (len(said), said)
    theirs: list[Step] = [Raw(head), Sleep(0.01), chunk(said), Raw(b"0\r\n\r\n")]
    split: list[Step] = [Raw(head), Sleep(0.01), Raw(mine)]
    with_trailers = [Raw(head + mine)] if in_one_piece else split
    answers = iter([with_trailers, theirs] * 2)
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: next(answers)
        for _ in range(4):
            reply = await gateway.chat(stream=True)
            assert reply.status == 200
            names = [name for name, _ in reply.headers]
            assert "x-cost" not in names
            assert "set-cookie" not in names


async def test_an_answer_that_ends_with_its_connection() -> None:
    head = b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n"
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [Raw(head + PLAIN), Close()]
        for _ in range(2):
            assert (await gateway.chat()).body == PLAIN


async def test_two_cookies_stay_two_and_unknown_statuses_pass() -> None:
    fields = [("set-cookie", "a=1"), ("set-cookie", "b=2")]
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: answer(b"{}", 299, fields)
        reply = await gateway.chat()
        assert reply.status == 299
        assert [value for name, value in reply.headers if name == "set-cookie"] == ["a=1", "b=2"]


async def test_what_goes_to_the_worker() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        reply = await gateway.post(
            f"{CHAT}?a=b&c",
            chat_body(),
            "Connection: keep-alive, X-Hop",
            "X-Hop: 1",
            "TE: trailers",
            "X-Custom: Kept As It Is",
            "Authorization: Bearer k",
            "traceparent: 00-1-2-01",
        )
        assert reply.status == 200
        sent = worker.requests[0]
        assert sent.target == f"{CHAT}?a=b&c"
        assert sent.header("host") == f"127.0.0.1:{worker.port}"
        assert [sent.header(name) for name in ("x-hop", "te", "connection")] == [None] * 3
        assert sent.header("x-custom") == "Kept As It Is"
        assert sent.header("authorization") == "Bearer k"
        assert sent.header("traceparent") == "00-1-2-01"
        assert sent.header("x-request-id") == reply.header("x-request-id")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param("abc-123", True, id="fit"),
        pytest.param("a b", False, id="a-space"),
        pytest.param("x" * 200, False, id="too-long"),
    ],
)
async def test_a_request_id_is_taken_over_if_it_is_fit(given: str, kept: bool) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        reply = await gateway.post(CHAT, chat_body(), f"X-Request-Id: {given}")
        shown = reply.header("x-request-id")
        assert shown
        assert (shown == given) is kept
        assert worker.requests[0].header("x-request-id") == shown
        assert [name for name, _ in worker.requests[0].headers].count("x-request-id") == 1


async def test_a_second_answer_nobody_asked_for_is_not_taken_for_the_next() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [
            Raw(b"".join(step.data for step in json_answer({"n": at}) if isinstance(step, Raw)))
            for at in (1, 2)
        ]
        for _ in range(3):
            assert (await gateway.chat()).json == {"n": 1}


async def test_a_length_that_may_not_cross_is_replaced_under_a_head_that_came_before_too() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: content-length\r\n"
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [Raw(head + b"content-length: 8\r\n\r\n" + b'{"n": 1}')]
        for _ in range(3):
            reply = await gateway.chat()
            assert (reply.status, reply.json) == (200, {"n": 1})
            assert reply.header("connection") is None
