"""The front door over sockets, with a generator that says what it is told to."""

import asyncio
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from clocks import FakeClock
from radixgate.errors import WorkerFailed
from radixgate.gateway.attempt import AnswerCounts, Downstream, Headers, WholeHead
from radixgate.gateway.deadlines import Deadlines
from radixgate.gateway.http_answer import head_lines
from radixgate.gateway.http_front import Front
from radixgate.gateway.outbox import Outbox
from radixgate.gateway.own_headers import OwnHeaders
from radixgate.gateway.request_head import HeadCache, RequestHead
from radixgate.gateway.request_ids import RequestIds
from radixgate.gateway.request_reader import FrontLimits
from raw_client import RawClient, ask, request
from until import until

JSON: Headers = [(b"content-type", b"application/json")]


@dataclass
class Asked:
    """One request as the generator got it; also the attempt that the front steers."""

    head: RequestHead
    body: bytes
    client: Downstream
    steered: list[str] = field(default_factory=list)

    def pause(self) -> None:
        self.steered.append("pause")

    def resume(self) -> None:
        self.steered.append("resume")

    def delivered(self) -> AnswerCounts | None:
        return None

    def cancel(self) -> None:
        self.steered.append("cancel")


class Scripted:
    """Answers at once with the body it got, or leaves the answer to the test."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.by_hand = False

    def generate(self, head: RequestHead, body: bytes, downstream: Downstream) -> Asked:
        asked = Asked(head, body, downstream)
        self.asked.append(asked)
        if not self.by_hand:
            downstream.on_head(200, [*JSON, (b"content-length", b"%d" % len(body))])
            downstream.on_body(body)
            downstream.on_end(None)
        return asked

    async def next(self, number: int = 0) -> Asked:
        await until(lambda: len(self.asked) > number)
        return self.asked[number]


@dataclass
class Served:
    port: int
    front: Front
    generator: Scripted
    clock: FakeClock


@asynccontextmanager
async def served(max_body_bytes: int = 10_000_000) -> AsyncIterator[Served]:
    async def show(http: web.Request) -> web.Response:
        return web.Response(text=f"{http.method} {http.path} {(await http.read()).decode()}")

    app = web.Application()
    app.add_routes([web.get("/{path:.*}", show), web.post("/{path:.*}", show)])
    runner = web.AppRunner(app)
    await runner.setup()
    admin = runner.server
    assert admin is not None
    generator, clock = Scripted(), FakeClock()
    front = Front(
        generator,
        admin,
        frozenset((b"/generate",)),
        FrontLimits(max_body_bytes),
        clock,
        Deadlines(clock),
        Outbox(),
        OwnHeaders(b"random", RequestIds(random.Random(1))),
        HeadCache(),
    )
    server = await asyncio.get_running_loop().create_server(front, "127.0.0.1", 0)
    try:
        yield Served(server.sockets[0].getsockname()[1], front, generator, clock)
    finally:
        server.close()
        front.abort()
        await runner.cleanup()


async def test_a_kept_connection_answers_one_request_after_the_other() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        for text in (b"one", b"two"):
            answer = await client.ask(request("/generate", text))
            assert (answer.status, answer.body, answer.header("connection")) == (200, text, None)
        assert len(gateway.front.connections) == 1


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        client.send(b"".join(request("/generate", b"%d" % at) for at in range(50)))
        assert [(await client.answer()).body for _ in range(50)] == [b"%d" % at for at in range(50)]


async def test_a_request_behind_a_running_answer_waits_for_it() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        gateway.generator.by_hand = True
        client.send(request("/generate", b"one"))
        first = await gateway.generator.next()
        client.send(request("/generate", b"two"))
        await asyncio.sleep(0.01)
        assert len(gateway.generator.asked) == 1
        first.client.on_head(200, JSON)
        first.client.on_body(b"1")
        first.client.on_end(None)
        assert (await client.answer()).body == b"1"
        assert (await gateway.generator.next(1)).body == b"two"


async def test_an_answer_of_unknown_length_is_chunked() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        gateway.generator.by_hand = True
        client.send(request("/generate", b"x"))
        asked = await gateway.generator.next()
        asked.client.on_head(200, JSON)
        asked.client.on_body(b"hel")
        asked.client.on_body(b"lo")
        asked.client.on_end(None)
        answer = await client.answer()
        assert (answer.chunked, answer.body) == (True, b"hello")


@pytest.mark.parametrize(
    ("version", "headers", "stays"),
    [
        pytest.param("1.1", (), True, id="1.1"),
        pytest.param("1.1", ("Connection: close",), False, id="1.1-close"),
        pytest.param("1.0", (), False, id="1.0"),
        pytest.param("1.0", ("Connection: keep-alive",), True, id="1.0-keep-alive"),
    ],
)
async def test_who_closes_the_connection(
    version: str, headers: tuple[str, ...], stays: bool
) -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        raw = request("/generate", b"x", version=version, headers=headers)
        answer = await client.ask(raw)
        assert (answer.status, answer.body) == (200, b"x")
        if stays:
            assert (await client.ask(raw)).status == 200
        else:
            assert answer.header("connection") == "close"
            assert await client.ended()


async def test_http_1_0_gets_no_chunks() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        gateway.generator.by_hand = True
        client.send(request("/generate", b"x", version="1.0", headers=("Connection: keep-alive",)))
        asked = await gateway.generator.next()
        asked.client.on_head(200, JSON)
        asked.client.on_body(b"hello")
        asked.client.on_end(None)
        answer = await client.answer()
        assert (answer.chunked, answer.body) == (False, b"hello")
        assert answer.header("connection") == "close"


async def test_a_chunked_body_and_100_continue() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        head = b"POST /generate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
        client.send(head + b"Expect: 100-continue\r\n\r\n")
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"3\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n")
        answer = await client.answer()
        assert (answer.status, answer.body) == (200, b"hello")
        assert (await client.ask(request("/generate", b"x"))).body == b"x"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        pytest.param(request("/health", method="GET"), "GET /health ", id="get"),
        pytest.param(request("/workers", b"{}"), "POST /workers {}", id="post-elsewhere"),
        pytest.param(request("/generate", method="GET"), "GET /generate ", id="get-of-a-hot-path"),
    ],
)
async def test_other_requests_reach_the_application(raw: bytes, shown: str) -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        assert (await client.ask(request("/generate", b"x"))).body == b"x"
        client.send(raw[:9])
        await asyncio.sleep(0.005)
        answer = await client.ask(raw[9:])
        assert (answer.status, answer.body.decode()) == (200, shown)
        assert not gateway.front.connections


async def test_head_of_another_path() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        answer = await client.ask(request("/health", method="HEAD"), head=True)
        assert answer.status == 200


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(
            b"POST /generate HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="length-and-chunked",
        ),
        pytest.param(
            b"GET /health HTTP/1.1\r\nHost: a\r\nA: b\nC: d\r\n\r\n", id="bare-lf-in-admin"
        ),
        pytest.param(b"POST /generate HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", id="folding"),
        pytest.param(b"\x16\x03\x01\x00\x00", id="tls"),
        pytest.param(b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", id="long-target"),
        pytest.param(
            b"POST /generate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            id="bad-chunk",
        ),
    ],
)
async def test_what_cannot_be_trusted_is_refused_and_the_connection_closed(raw: bytes) -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        client.send(raw + request("/generate", b"smuggled"))
        answer = await client.answer()
        assert (answer.status, answer.header("connection")) == (400, "close")
        assert answer.json["error"]["type"] == "invalid_request_error"
        assert await client.ended()
        assert not gateway.generator.asked


async def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    async with served(max_body_bytes=1000) as gateway, RawClient(gateway.port) as client:
        client.send(request("/generate", b"x" * 1001)[:200])
        answer = await client.answer()
        assert (answer.status, answer.json["error"]["code"]) == (413, "payload_too_large")
        assert answer.json["error"]["param"] == "body"


async def test_a_client_that_sends_all_before_it_reads_still_sees_the_refusal() -> None:
    async with served(max_body_bytes=1000) as gateway, RawClient(gateway.port) as client:
        client.send(request("/generate", b"x" * 5_000_000))
        await client.writer.drain()
        assert (await client.answer()).status == 413
        assert await client.ended()


async def test_a_client_that_leaves_cancels_its_request() -> None:
    async with served() as gateway:
        gateway.generator.by_hand = True
        for number, linger in enumerate((False, True)):
            async with RawClient(gateway.port) as client:
                client.send(request("/generate", b"x"))
                asked = await gateway.generator.next(number)
                if linger:  # a reset instead of a clean end
                    raw = client.writer.get_extra_info("socket")
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await asyncio.sleep(0.02)
            assert asked.steered == ["cancel"]
        assert not gateway.front.connections


async def test_an_answer_of_the_turn_in_which_the_client_ends_its_side_still_goes_out() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        gateway.generator.by_hand = True
        client.send(request("/generate", b"x"))
        asked = await gateway.generator.next()
        fields = [*JSON, (b"content-length", b"1")]
        head = WholeHead(200, fields, head_lines(200, fields))
        asked.client.on_answer(head, b"", b"1", AnswerCounts())
        (connection,) = gateway.front.connections
        transport = connection._transport
        assert transport is not None
        assert not connection.eof_received()
        transport.close()  # as the loop does then
        assert (await client.answer()).body == b"1"
        assert await client.ended()


async def test_a_slow_reader_pauses_the_worker_and_gets_every_byte() -> None:
    async with served() as gateway, RawClient(gateway.port, read_limit=1024) as client:
        gateway.generator.by_hand = True
        client.send(request("/generate", b"x"))
        asked = await gateway.generator.next()
        asked.client.on_head(200, JSON)
        sent = 0
        while not asked.steered:
            asked.client.on_body(b"%08d" % sent * 1000)
            sent += 1
            await asyncio.sleep(0)
        assert asked.steered == ["pause"]
        answering = asyncio.create_task(client.answer())
        await until(lambda: asked.steered == ["pause", "resume"])
        asked.client.on_end(None)
        answer = await answering
        assert answer.body == b"".join(b"%08d" % at * 1000 for at in range(sent))


async def test_an_answer_that_cannot_go_on_is_cut() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        gateway.generator.by_hand = True
        client.send(request("/generate", b"x"))
        asked = await gateway.generator.next()
        asked.client.on_head(200, JSON)
        asked.client.on_body(b"half")
        await asyncio.sleep(0.005)
        asked.client.on_failure(WorkerFailed("gone"))
        answer = await client.answer()
        assert (answer.cut, answer.body) == (True, b"half")
        assert asked.steered == []


async def test_who_is_late_is_told_so_or_closed() -> None:
    async with served() as gateway:
        async with RawClient(gateway.port) as silent, RawClient(gateway.port) as slow:
            await silent.ask(request("/generate", b"x"))
            slow.send(b"POST /generate HTTP/1.1\r\n")
            await asyncio.sleep(0.01)
            gateway.clock.advance(16)
            gateway.front.deadlines.sweep()
            assert (await slow.answer()).status == 408
            assert await slow.ended()
            gateway.clock.advance(60)
            gateway.front.deadlines.sweep()
            assert await silent.ended()
        async with RawClient(gateway.port) as stuck:
            stuck.send(request("/generate", b"x" * 100)[:-1])
            await asyncio.sleep(0.01)
            gateway.clock.advance(31)
            gateway.front.deadlines.sweep()
            assert (await stuck.answer()).status == 408


async def test_draining_closes_idle_connections_now_and_others_after_their_answer() -> None:
    async with served() as gateway:
        gateway.generator.by_hand = True
        async with RawClient(gateway.port) as idle, RawClient(gateway.port) as busy:
            busy.send(request("/generate", b"x"))
            asked = await gateway.generator.next()
            gateway.front.drain()
            assert await idle.ended()
            asked.client.on_head(200, JSON)
            asked.client.on_body(b"late")
            asked.client.on_end(None)
            answer = await busy.answer()
            assert (answer.body, answer.header("connection")) == (b"late", "close")
            assert await busy.ended()


async def test_a_body_of_several_megabytes_arrives_whole() -> None:
    async with served() as gateway:
        body = b"0123456789" * 300_000
        assert (await ask(gateway.port, request("/generate", body))).body == body


@pytest.mark.parametrize("field", ["Connection: close", "Transfer-Encoding: chunked"])
async def test_a_client_that_is_still_sending_sees_the_last_answer(field: str) -> None:
    raw = request("/generate", b"x", headers=(field,))
    if "chunked" in field:
        raw = raw.replace(b"Content-Length: 1\r\n", b"").replace(
            b"\r\n\r\nx", b"\r\n\r\n1\r\nx\r\n0\r\n\r\n"
        )
    async with served() as gateway, RawClient(gateway.port) as client:
        client.send(raw + request("/generate", b"y" * 200_000))
        await client.writer.drain()
        await asyncio.sleep(0.02)
        client.send(b"z" * 100_000)
        answer = await client.answer()
        assert (answer.status, answer.body) == (200, b"x")
        assert await client.ended()
        assert len(gateway.generator.asked) == 1
        gateway.clock.advance(6)
        gateway.front.deadlines.sweep()
        await until(lambda: not gateway.front.connections)


async def test_a_body_that_drips_is_refused_in_time() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        client.send(request("/generate", b"x" * 100)[:-100])
        for _ in range(4):
            await asyncio.sleep(0.005)
            gateway.clock.advance(9)
            gateway.front.deadlines.sweep()
            client.send(b"x")
        answer = await client.answer()
        assert (answer.status, answer.json["error"]["code"]) == (408, "timeout")
        assert await client.ended()
