"""An answer that nobody asked for is never given to the next request, over real sockets."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from clocks import FakeClock
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import AT_ONCE_BYTES, LoopTurn
from radixgate.gateway.upstream.fetch import Fetched, fetch
from radixgate.gateway.upstream.pool import UpstreamPool


def whole(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def chunked(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


Form = Callable[[bytes], bytes]
FORMS = pytest.mark.parametrize("form", [whole, chunked])
TURNS = pytest.mark.parametrize("at_once", [0, 1_000_000], ids=["in-turns", "at-once"])


class Peer:
    """A worker that sends what it is told, when it is told; what is sent is there at once."""

    def __init__(self, at_once: int) -> None:
        self.turn = LoopTurn()
        self.turn.at_once = at_once
        self.reset = asyncio.Event()  # a connection has been broken off
        self._requests: asyncio.Queue[int] = asyncio.Queue()  # the number of its socket
        self._fd = -1

    async def open(self) -> None:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        clock = FakeClock()
        self.pool = UpstreamPool(
            *self.server.sockets[0].getsockname(),
            clock=clock,
            deadlines=Deadlines(clock),
            turn=self.turn,
            max_idle=8,
            idle_timeout_s=10.0,
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self._requests.put_nowait(writer.get_extra_info("socket").fileno())
        except (ConnectionError, asyncio.IncompleteReadError):
            self.reset.set()
        finally:
            writer.close()

    async def request(self) -> None:
        """The next one has come, over whichever connection."""
        self._fd = await self._requests.get()

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            assert os.write(self._fd, piece) == len(piece)

    def ask(self) -> "asyncio.Task[Fetched]":
        return asyncio.create_task(fetch(self.pool, "GET", "/", timeout_s=10))

    async def exchange(self, *pieces: bytes) -> bytes:
        """The body of the answer that comes in these pieces."""
        asked = self.ask()
        await self.request()
        self.send(*pieces)
        return (await asked).body


@asynccontextmanager
async def peer(at_once: int) -> AsyncIterator[Peer]:
    one = Peer(at_once)
    await one.open()
    yield one
    one.pool.close()
    one.server.close()


@FORMS
@TURNS
async def test_what_comes_just_before_the_connection_is_taken(form: Form, at_once: int) -> None:
    """The loop has not read it yet: it stands in the socket as the next request is begun."""
    async with peer(at_once) as worker:
        for _ in range(2):  # by the second its head is known, and not parsed
            assert await worker.exchange(form(b"own")) == b"own"
        worker.send(form(b"not"))
        assert worker.pool.take_idle() is None
        assert await worker.exchange(form(b"own")) == b"own"
        assert worker.pool.dialed == 2


@FORMS
@TURNS
@pytest.mark.parametrize("known", [False, True], ids=["parsed", "known-head"])
async def test_what_comes_with_the_first_answer(form: Form, at_once: int, known: bool) -> None:
    async with peer(at_once) as worker:
        if known:
            for _ in range(2):
                assert await worker.exchange(form(b"own")) == b"own"
        assert await worker.exchange(form(b"own") + form(b"not")) == b"own"
        assert worker.pool.take_idle() is None
        assert await worker.exchange(form(b"own")) == b"own"
        assert worker.pool.dialed == 2


@FORMS
@TURNS
async def test_what_comes_while_it_is_idle_ends_it(form: Form, at_once: int) -> None:
    async with peer(at_once) as worker:
        assert await worker.exchange(form(b"own")) == b"own"
        worker.send(form(b"not"))
        await worker.reset.wait()
        assert await worker.exchange(form(b"own")) == b"own"
        assert worker.pool.dialed == 2


@TURNS
async def test_what_comes_behind_a_large_answer_that_takes_several_reads(at_once: int) -> None:
    async with peer(at_once) as worker:
        own = b"x" * (4 * AT_ONCE_BYTES)
        assert await worker.exchange(whole(own), whole(b"not")) == own
        assert await worker.exchange(whole(b"own")) == b"own"


async def test_two_pieces_of_one_turn_are_not_for_two_requests() -> None:
    """The first ends an answer, and who waits for a connection takes it before the second is
    looked at."""
    async with peer(0) as worker:
        assert await worker.exchange(whole(b"own")) == b"own"
        connection = worker.pool.take_idle()
        assert connection is not None
        taken: list[object] = []

        class Hears:
            def on_response(self, status: int, headers: object) -> None: ...
            def on_data(self, data: bytes) -> None: ...
            def on_complete(self) -> None:
                taken.append(worker.pool.take_idle())

            def on_answer(self, status: int, headers: object, body: bytes) -> None:
                taken.append(worker.pool.take_idle())

            def on_broken(self, error: Exception, answered: bool) -> None: ...

        connection.send(b"GET / HTTP/1.1\r\n\r\n", b"", Hears())
        connection.data_received(whole(b"own"))
        connection.data_received(whole(b"not"))
        worker.pool.turn.end()
        assert taken == [None]
        assert not connection.is_open()


async def test_what_comes_after_the_next_request_has_gone_out_is_taken_for_its_answer_once() -> (
    None
):
    """HTTP/1.1 tells them apart by nothing else. Its own answer is then one too many, and goes to
    nobody."""
    async with peer(0) as worker:
        assert await worker.exchange(whole(b"first")) == b"first"
        asked = worker.ask()
        await worker.request()
        worker.send(whole(b"late"), whole(b"second"))
        assert (await asked).body == b"late"
        assert await worker.exchange(whole(b"third")) == b"third"
        assert worker.pool.dialed == 2
