"""Answers of workers that go by HTTP's rarer rules."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from clocks import FakeClock
from radixgate.errors import WorkerFailed
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.upstream.fetch import fetch
from radixgate.gateway.upstream.pool import UpstreamPool
from scripted_worker import Close, Raw, ScriptedWorker, Step
from small_gateway import small_gateway

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"


def pool_to(port: int) -> UpstreamPool:
    clock = FakeClock()
    return UpstreamPool(
        *("127.0.0.1", port),
        clock=clock,
        deadlines=Deadlines(clock),
        turn=LoopTurn(),
        max_idle=8,
        idle_timeout_s=10.0,
    )


@pytest.mark.parametrize("coding", ["identity", "Identity", " identity "])
async def test_a_body_in_no_transfer_coding_ends_with_its_connection(coding: str) -> None:
    steps: list[Step] = [
        Raw(PLAIN + f"transfer-encoding: {coding}\r\n\r\n".encode() + b"wh"),
        Raw(b"ole"),
        Close(),
    ]
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: steps
        reply = await gateway.chat()
        assert (reply.status, reply.body) == (200, b"whole")
        assert reply.header("transfer-encoding") in (None, "chunked")


async def test_a_head_that_is_too_long_is_called_so() -> None:
    long = b"".join(b"x-%d: %b\r\n" % (number, b"v" * 1_000) for number in range(140))
    async with ScriptedWorker() as worker:
        worker.script = lambda request: [Raw(PLAIN + long + b"content-length: 0\r\n\r\n")]
        pool = pool_to(worker.port)
        with pytest.raises(WorkerFailed, match="headers over 131072 bytes"):
            await fetch(pool, "POST", "/generate", timeout_s=10)
        pool.close()


@asynccontextmanager
async def hasty_worker() -> AsyncIterator[int]:
    """Its port. It answers at the head of a request, and reads no more of what comes behind it."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\n{}")
        await over.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1_024)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        over.set()
        server.close()


@pytest.mark.parametrize(
    ("body_bytes", "kept"),
    [pytest.param(100, True, id="it-had-all"), pytest.param(32_000_000, False, id="it-had-a-part")],
)
async def test_behind_half_a_request_no_other_one_is_sent(body_bytes: int, kept: bool) -> None:
    """It would wait behind the rest of a body that may never be read."""
    async with hasty_worker() as port:
        pool = pool_to(port)
        for _ in range(2):  # the second answer's head is known
            body = b"x" * body_bytes
            assert (await fetch(pool, "POST", "/generate", body, timeout_s=10)).status == 413
            idle = pool.take_idle()
            assert (idle is not None) is kept
            if idle is not None:
                idle.abort()
        pool.close()
