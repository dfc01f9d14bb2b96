"""G03: bytes are relayed untouched however they are cut, and the counts are read all the same."""

from collections.abc import Callable, Sequence

import pytest

from front_door import connections_of
from raw_client import RawClient, request
from scripted_worker import Raw, Recorded, ScriptedWorker, Sleep, Step, chunk, sse_head
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import until

BODY = (
    b'data: {"choices":[{"index":0,"delta":{"content":"caf\xc3\xa9 \xf0\x9f\x98\x80"},'
    b'"finish_reason":null}]}\r\n\r\n'
    b': ping\n\ndata:{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,'
    b'"total_tokens":10}}\n\ndata: [DONE]\n\n'
)
END = Raw(b"0\r\n\r\n")


def cut_at(place: int) -> Callable[[Recorded], Sequence[Step]]:
    parts = (chunk(BODY[:place]), Sleep(0.005), chunk(BODY[place:]))
    return lambda request: [*sse_head(), *parts, END]


async def relay(gateway: SmallGateway, worker: ScriptedWorker, places: Sequence[int]) -> None:
    """Send the body cut at each place, one after the other on one connection."""
    metrics = gateway.gateway.metrics
    async with RawClient(gateway.port) as client:
        for place in places:
            worker.script = cut_at(place)
            before = (metrics.prompt_tokens, metrics.completion_tokens)
            reply = await client.ask(request(CHAT, chat_body(stream=True)))
            assert reply.body == BODY, place
            after = (metrics.prompt_tokens, metrics.completion_tokens)
            assert (after[0] - before[0], after[1] - before[1]) == (7, 3), place


async def test_g03_a_cut_in_an_event_a_character_and_a_line_end() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        at = BODY.index(b"\xc3") + 1, BODY.index(b"\r\n\r\n") + 1, BODY.index(b"usage")
        await relay(gateway, worker, at)


@pytest.mark.slow
async def test_g03_every_cut_gives_the_same_bytes_and_counts() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        await relay(gateway, worker, range(1, len(BODY)))


async def test_g03_an_event_of_a_megabyte_arrives_whole() -> None:
    long = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * 1_048_576 + b'"}}]}\n\n'
    rest = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\n'
    done = b"data: [DONE]\n\n"
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [*sse_head(), chunk(long), chunk(rest + done), END]
        reply = await gateway.chat(stream=True)
        assert reply.body == long + rest + done
        assert gateway.gateway.metrics.completion_tokens == 3


async def test_a_slow_reader_gets_every_byte_and_the_gateway_keeps_few() -> None:
    piece = chunk(b"data: " + b"x" * 20_000 + b"\n\n")
    end = [chunk(b"data: [DONE]\n\n"), END]
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [
            *sse_head(),
            *[piece] * 600,
            *end,
        ]  # more than the sockets keep
        async with RawClient(gateway.port, read_limit=4096) as client:
            client.send(request(CHAT, chat_body(stream=True)))
            assert gateway.gateway.door is not None
            connections = connections_of(gateway.gateway.door.front)
            await until(lambda: any(front._paused for front in connections))
            (front,) = connections
            assert front._transport is not None
            assert front._transport.get_write_buffer_size() < 500_000
            reply = await client.answer()
            assert len(reply.body) == 600 * 20_008 + len(b"data: [DONE]\n\n")
