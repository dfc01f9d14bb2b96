"""A client that takes nothing of its answer is given up; one that takes it slowly is not."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from radixgate.worker.serving.sending import StallWatch, send
from raw_client import RawClient, request
from until import PATIENCE_S, until

PIECE = b"x" * 32_768  # less than a server writes ahead


class Answered:
    """An answer of `pieces` pieces."""

    content_type = b"text/event-stream"

    def __init__(self, pieces: int) -> None:
        self.ended = False
        self._pieces = pieces

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            for _ in range(self._pieces):
                yield PIECE
        finally:
            self.ended = True


class Waiting:
    """A transport on which `waits` bytes wait."""

    def __init__(self) -> None:
        self.waits = 0
        self.cut = False

    def get_write_buffer_size(self) -> int:
        return self.waits

    def abort(self) -> None:
        self.cut = True


async def serving(answer: Answered, stall_timeout_s: float) -> web.AppRunner:
    async def handle(http: web.Request) -> web.StreamResponse:
        return await send(http, answer, "r-1", stall_timeout_s)

    app = web.Application()
    app.router.add_post("/", handle)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    await web.SockSite(runner, listener).start()
    return runner


@pytest.mark.parametrize(
    ("waits", "looks"),
    [
        pytest.param([0] * 30, 30, id="nothing-waits"),
        pytest.param([70_000 - place for place in range(30)], 30, id="a-byte-at-each-look"),
        pytest.param([70_000] * 30, 11, id="nothing-is-taken"),
        pytest.param([9] * 10 + [8] * 30, 21, id="a-byte-was-taken-in-the-last-moment"),
    ],
)
def test_a_connection_is_cut_after_ten_looks_in_which_nothing_was_taken(
    waits: list[int], looks: int
) -> None:
    transport = Waiting()
    watch = StallWatch(transport)
    looked = 0
    for transport.waits in waits:
        looked += 1
        if not watch.look():
            break
    assert (looked, transport.cut) == (looks, looks < len(waits))


def test_who_is_written_to_again_has_taken_something() -> None:
    transport = Waiting()
    watch = StallWatch(transport)
    for transport.waits in range(70_000, 70_100):
        watch.wrote()
        assert watch.look()
    assert not transport.cut


@pytest.mark.parametrize(
    "pieces", [pytest.param(10_000, id="half-sent"), pytest.param(1, id="all-but-its-end-sent")]
)
async def test_a_client_that_reads_nothing_loses_its_answer(pieces: int) -> None:
    answer = Answered(pieces)
    runner = await serving(answer, 0.05)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, runner.addresses[0][:2])
        await loop.sock_sendall(client, request("/"))
        server = runner.server
        assert server is not None
        await until(lambda: len(server.connections) == 1)
        await until(lambda: not server.connections)
        await until(lambda: answer.ended)
    await runner.cleanup()


async def test_a_client_that_reads_gets_every_byte_and_its_connection_stays() -> None:
    runner = await serving(Answered(10), 5.0)
    async with RawClient(runner.addresses[0][1]) as client:
        for _ in range(2):
            answer = await client.ask(request("/"))
            assert (answer.status, len(answer.body), answer.cut) == (200, 327_680, False)
    await runner.cleanup()


@pytest.mark.parametrize("wish", ["Connection: keep-alive", "X-No: wish"])
async def test_of_http_1_0_the_end_of_an_answer_is_that_of_its_connection(wish: str) -> None:
    """It knows no chunks, and the answer has no length when it begins."""
    runner = await serving(Answered(2), 5.0)
    async with RawClient(runner.addresses[0][1]) as client, asyncio.timeout(PATIENCE_S):
        answer = await client.ask(request("/", version="1.0", headers=(wish,)))
        assert (answer.status, len(answer.body)) == (200, 65_536)
        assert answer.header("connection") in (None, "close")
    await runner.cleanup()
