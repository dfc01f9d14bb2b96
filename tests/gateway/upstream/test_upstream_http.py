"""Connections to a worker: used again, counted, and let go of."""

import asyncio

import pytest

from clocks import FakeClock
from radixgate.errors import RadixgateError, WorkerFailed
from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.upstream.connection import UpstreamConnection
from radixgate.gateway.upstream.fetch import Fetched, fetch
from radixgate.gateway.upstream.pool import UpstreamPool
from scripted_worker import Close, Hang, Raw, ScriptedWorker, Sleep, answer, chat_answer
from small_gateway import small_gateway
from until import until


async def ask(pool: UpstreamPool) -> Fetched:
    return await fetch(pool, "POST", "/generate", timeout_s=2)


def pool_to(worker: ScriptedWorker, max_idle: int = 8) -> tuple[UpstreamPool, FakeClock, Deadlines]:
    clock = FakeClock()
    deadlines = Deadlines(clock)
    pool = UpstreamPool(
        "127.0.0.1",
        worker.port,
        clock=clock,
        deadlines=deadlines,
        turn=LoopTurn(),
        max_idle=max_idle,
        idle_timeout_s=10.0,
    )
    return pool, clock, deadlines


def open_connections(worker: ScriptedWorker) -> int:
    return sum(connection.closed_at is None for connection in worker.connections)


async def test_one_connection_serves_requests_that_follow_one_another() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        for _ in range(5):
            assert (await gateway.chat()).status == 200
        assert len({request.connection.number for request in worker.requests}) == 1


async def test_the_last_connection_given_back_is_the_first_taken() -> None:
    async with ScriptedWorker() as worker:
        worker.script = lambda request: [Sleep(0.01), *answer(b"{}")]
        pool, _, _ = pool_to(worker)
        await asyncio.gather(*(ask(pool) for _ in range(3)))
        assert len(worker.connections) == 3
        for _ in range(3):
            await ask(pool)
        assert len({request.connection.number for request in worker.requests[3:]}) == 1
        pool.close()


async def test_no_more_idle_connections_are_kept_than_allowed_nor_longer() -> None:
    async with ScriptedWorker() as worker:
        worker.script = lambda request: [Sleep(0.01), *answer(b"{}")]
        pool, clock, deadlines = pool_to(worker, max_idle=2)
        await asyncio.gather(*(ask(pool) for _ in range(5)))
        await until(lambda: open_connections(worker) == 2)
        clock.advance(9)
        deadlines.sweep()
        await ask(pool)
        clock.advance(2)
        deadlines.sweep()
        await until(lambda: open_connections(worker) == 1)
        clock.advance(9)
        deadlines.sweep()
        await until(lambda: open_connections(worker) == 0)


async def test_an_answer_that_closes_its_connection_leaves_none_behind() -> None:
    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"
    async with ScriptedWorker() as worker:
        pool, _, _ = pool_to(worker)
        answers = [Raw(head), Raw(head.replace(b"1.1", b"1.0"))]
        worker.script = lambda request: [answers[len(worker.requests) - 1], Hang()]
        for _ in answers:
            assert (await ask(pool)).body == b"{}"
            assert pool.take_idle() is None


async def test_interim_answers_are_passed_over() -> None:
    early = Raw(b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n")
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [early, Sleep(0.005), *chat_answer()]
        for _ in range(2):
            reply = await gateway.chat()
            assert (reply.status, reply.interim) == (200, [])
            assert reply.header("link") is None
        assert len({request.connection.number for request in worker.requests}) == 1


class PausesAtItsEnd:
    """A listener that wants no more as the end of a JSON answer comes."""

    def __init__(self, connection: UpstreamConnection) -> None:
        self.connection = connection
        self.complete = False

    def on_response(self, status: int, headers: Headers) -> None: ...

    def on_data(self, data: bytes) -> None:
        if data.endswith(b"}"):
            self.connection.pause()

    def on_complete(self) -> None:
        self.complete = True

    def on_answer(self, status: int, headers: Headers, body: bytes) -> None:
        raise AssertionError("it came in two pieces")

    def on_broken(self, error: RadixgateError, answered: bool) -> None: ...


async def test_a_paused_connection_is_read_again_when_it_is_used_again() -> None:
    async with ScriptedWorker() as worker:
        whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
        worker.script = lambda request: [Raw(whole[:-1]), Sleep(0.01), Raw(whole[-1:])]
        pool, _, _ = pool_to(worker)
        connection = await pool.connect(1.0)
        listener = PausesAtItsEnd(connection)
        connection.send(b"GET /generate HTTP/1.1\r\nhost: a\r\n\r\n", b"", listener)
        await until(lambda: listener.complete)
        assert (await ask(pool)).ok
        assert len(worker.connections) == 1


async def test_what_nobody_asked_for_ends_its_connection_before_the_turn_does() -> None:
    async with ScriptedWorker() as worker:
        worker.script = lambda request: answer(b"{}")
        pool, _, _ = pool_to(worker)
        await ask(pool)
        connection = pool.take_idle()
        assert connection is not None
        pool.release(connection)
        connection.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")
        # A request that comes in the same turn does not get it, nor what may come behind it.
        assert pool.take_idle() is None
        pool.close()


class Faulty:
    """A listener that cannot take the body of an answer."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_response(self, status: int, headers: Headers) -> None:
        self.heard.append(f"status {status}")

    def on_data(self, data: bytes) -> None:
        raise ValueError("a fault of ours")

    def on_complete(self) -> None:
        self.heard.append("complete")

    def on_answer(self, status: int, headers: Headers, body: bytes) -> None:
        self.heard.append("answer")

    def on_broken(self, error: RadixgateError, answered: bool) -> None:
        self.heard.append(f"broken: {error}, {answered}")


@pytest.mark.parametrize("at_once", [0, 100])
async def test_a_fault_of_ours_in_an_answer_is_told_to_who_waits_for_it(at_once: int) -> None:
    async with ScriptedWorker() as worker:
        worker.script = lambda request: [
            Raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n"),
            Hang(),
        ]
        pool, _, _ = pool_to(worker)
        pool.turn.at_once = at_once
        connection, listener = await pool.connect(1.0), Faulty()
        connection.send(b"GET /generate HTTP/1.1\r\nhost: a\r\n\r\n", b"", listener)
        await until(lambda: len(listener.heard) == 2)
        assert listener.heard[0] == "status 200"
        assert listener.heard[1] == "broken: internal error; the log has the details, True"
        assert pool.take_idle() is None


async def test_an_idle_connection_that_the_worker_closes_is_forgotten() -> None:
    async with ScriptedWorker() as worker:
        worker.script = lambda request: [*answer(b"{}"), Sleep(0.01), Close()]
        pool, _, _ = pool_to(worker)
        await ask(pool)
        await until(lambda: open_connections(worker) == 0)
        await asyncio.sleep(0.01)
        assert pool.take_idle() is None


@pytest.mark.parametrize(
    "cut",
    [b"HTTP/1.1 200 OK\r\ncontent-ty", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"],
    ids=["in-a-name", "in-the-head", "after-an-interim-answer"],
)
async def test_an_answer_without_a_whole_head_is_no_answer(cut: bytes) -> None:
    async with ScriptedWorker() as worker:
        worker.script = lambda request: [Raw(cut), Close()]
        pool, _, _ = pool_to(worker)
        with pytest.raises(WorkerFailed):
            await ask(pool)
        pool.close()


LENGTH = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nfirst"
CHUNKS = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
    b"3\r\nfir\r\n2\r\nst\r\n0\r\n\r\n"
)


@pytest.mark.parametrize("first", [LENGTH, CHUNKS], ids=["length", "chunks"])
@pytest.mark.parametrize(
    "second",
    [LENGTH, CHUNKS, CHUNKS[:-9], LENGTH + CHUNKS],
    ids=["length", "chunks", "cut", "two-more"],
)
@pytest.mark.parametrize("cut", [0, 80, len(CHUNKS) - 2], ids=["one-piece", "in-it", "at-its-end"])
async def test_a_second_answer_is_no_part_of_the_first(
    first: bytes, second: bytes, cut: int
) -> None:
    async with ScriptedWorker() as worker:
        both = first + second
        pieces: list[Raw | Sleep] = [Raw(both[:cut]), Sleep(0.02)] if cut else []
        worker.script = lambda request: [*pieces, Raw(both[cut:]), Hang()]
        pool, _, _ = pool_to(worker)
        for _ in range(2):
            assert (await ask(pool)).body == b"first"
        # Whoever sends what nobody asked for is not asked on that connection again.
        assert len({request.connection.number for request in worker.requests}) == 2
        pool.close()
