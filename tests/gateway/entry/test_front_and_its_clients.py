"""Clients that leave, read slowly, are late or go on sending, at the front door."""

import asyncio
import socket
import struct
from functools import partial

import pytest

from front_door import JSON, connections_of, served
from radixgate.gateway.attempt.attempt import AnswerCounts, WholeHead
from radixgate.gateway.heads.http_answer import head_lines
from raw_client import Answer, RawClient, request
from until import until


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
            await until(partial(bool, asked.steered))
            assert asked.steered == ["cancel"]
        await until(lambda: not gateway.front.connections)


async def test_an_answer_of_the_turn_in_which_the_client_ends_its_side_still_goes_out() -> None:
    async with served() as gateway, RawClient(gateway.port) as client:
        gateway.generator.by_hand = True
        client.send(request("/generate", b"x"))
        asked = await gateway.generator.next()
        fields = [*JSON, (b"content-length", b"1")]
        head = WholeHead(200, fields, head_lines(200, fields), framed=True, streams=False)
        asked.client.on_answer(head, b"", b"1", AnswerCounts())
        (connection,) = connections_of(gateway.front)
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


async def test_who_is_late_is_told_so_or_closed() -> None:
    async with served() as gateway:
        async with RawClient(gateway.port) as silent, RawClient(gateway.port) as slow:
            await silent.ask(request("/generate", b"x"))
            slow.send(b"POST /generate HTTP/1.1\r\n")
            await until(gateway.front.busy)
            gateway.clock.advance(16)
            gateway.front.deadlines.sweep()
            assert (await slow.answer()).status == 408
            assert await slow.ended()
            gateway.clock.advance(60)
            gateway.front.deadlines.sweep()
            assert await silent.ended()
        async with RawClient(gateway.port) as stuck:
            stuck.send(request("/generate", b"x" * 100)[:-1])
            await until(gateway.front.busy)
            gateway.clock.advance(31)
            gateway.front.deadlines.sweep()
            assert (await stuck.answer()).status == 408


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
        await until(gateway.front.busy)
        for _ in range(4):
            await asyncio.sleep(0.005)
            gateway.clock.advance(9)
            gateway.front.deadlines.sweep()
            client.send(b"x")
        answer = await client.answer()
        assert (answer.status, answer.json["error"]["code"]) == (408, "timeout")
        assert await client.ended()


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("framed", [False, True], ids=["chunks", "a-length"])
async def test_a_stream_under_a_known_head_goes_out_as_any_other(
    version: bytes, framed: bool
) -> None:
    fields = [(b"content-type", b"text/event-stream"), *[(b"content-length", b"20")] * framed]
    name = (b"x-request-id", b"r-1")
    head = WholeHead(200, fields, head_lines(200, fields), framed=framed, streams=True)
    answers = list[Answer]()
    for known in (False, True):
        async with served() as gateway, RawClient(gateway.port) as client:
            gateway.generator.by_hand = True
            client.send(request("/generate", b"x").replace(b"HTTP/1.1", b"HTTP/" + version))
            asked = await gateway.generator.next()
            (connection,) = connections_of(gateway.front)
            assert not connection.head_written
            if known:
                asked.client.on_begin(head, b"x-request-id: r-1\r\n", b"data: one\n")
            else:
                asked.client.on_head(200, [*fields, name])
                asked.client.on_body(b"data: one\n")
            assert connection.head_written
            asked.client.on_body(b"data: two\n")
            asked.client.on_end(None)
            answers.append(await client.answer())
    assert answers[1] == answers[0]
    assert answers[1].body == b"data: one\ndata: two\n"
