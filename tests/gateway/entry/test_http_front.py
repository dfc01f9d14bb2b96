"""The front door over sockets: requests in every framing, and their answers."""

import asyncio
import gc

import pytest

from front_door import JSON, Scripted, connections_of, served
from radixgate.errors import WorkerFailed
from raw_client import RawClient, ask, request
from until import until


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


async def test_draining_closes_idle_connections_now_and_others_after_their_answer() -> None:
    async with served() as gateway:
        gateway.generator.by_hand = True
        async with RawClient(gateway.port) as idle, RawClient(gateway.port) as busy:
            busy.send(request("/generate", b"x"))
            asked = await gateway.generator.next()
            gateway.front.drain(gateway.generator)
            assert await idle.ended()
            asked.client.on_head(200, JSON)
            asked.client.on_body(b"late")
            asked.client.on_end(None)
            answer = await busy.answer()
            assert (answer.body, answer.header("connection")) == (b"late", "close")
            assert await busy.ended()


async def test_a_request_that_has_begun_to_arrive_before_the_drain_is_served() -> None:
    async with served() as gateway, RawClient(gateway.port) as early:
        late = Scripted()
        data = request("/generate", b"x" * 100)
        early.send(data[:-50])
        await until(gateway.front.busy)
        gateway.front.drain(late)
        early.send(data[-50:])
        answer = await early.answer()
        assert (answer.body, answer.header("connection")) == (b"x" * 100, "close")
        assert (await ask(gateway.port, data)).status == 200
        assert (len(gateway.generator.asked), len(late.asked)) == (1, 1)
        await until(lambda: not gateway.front.connections)


async def test_nobody_who_comes_after_the_drain_is_waited_for() -> None:
    async with served() as gateway:
        data = request("/generate", b"x" * 100)
        async with RawClient(gateway.port) as early:
            early.send(data[:-50])
            await until(gateway.front.busy)
            gateway.front.drain(Scripted())
            assert gateway.front.busy()
        await until(lambda: not gateway.front.connections)
        async with RawClient(gateway.port) as late:
            late.send(data[:-50])
            in_body = gateway.clock.now() + gateway.front.limits.body_timeout_s
            await until(lambda: in_body in {one.deadline for one in connections_of(gateway.front)})
            assert not gateway.front.busy()
            late.send(data[-50:])
            assert (await late.answer()).body == b"x" * 100


async def test_a_body_of_several_megabytes_arrives_whole() -> None:
    async with served() as gateway:
        body = b"0123456789" * 300_000
        assert (await ask(gateway.port, request("/generate", body))).body == body


async def test_one_that_is_lost_in_the_turn_in_which_it_came_is_not_handed_over() -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    async with served() as gateway, RawClient(gateway.port) as client:
        await until(lambda: len(gateway.front.connections) == 1)
        (connection,) = connections_of(gateway.front)
        connection.data_received(b"GET /show HTTP/1.1\r\nhost: a\r\n\r\n")
        assert connection._transport is not None
        connection._transport.abort()
        await until(lambda: not gateway.front.connections)
        assert await client.ended()
    gc.collect()  # where a task's exception that nobody has heard is told
    assert faults == []


@pytest.mark.parametrize("body", [b"hello", request("/generate", b"smuggled")])
async def test_what_follows_a_hand_over_in_the_same_turn_is_handed_over_too(body: bytes) -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        await until(lambda: len(gateway.front.connections) == 1)
        (connection,) = connections_of(gateway.front)
        connection.data_received(b"POST /show HTTP/1.1\r\nhost: a\r\n")
        connection.data_received(b"content-length: %d\r\n\r\n" % len(body))
        connection.data_received(body[:4])
        connection.data_received(body[4:])
        assert (await client.answer()).body == b"POST /show " + body
        assert gateway.generator.asked == []
