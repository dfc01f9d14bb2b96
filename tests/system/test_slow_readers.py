"""A client that hardly reads: the gateway keeps little of its answer, and nobody else waits."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from live_fleet import LiveFleet, empty_fleet
from raw_client import request
from scripted_worker import Recorded, ScriptedWorker, Sleep, Step, chunk, delta, sse_end, sse_head
from small_gateway import CHAT, chat_body
from until import PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

STREAM_BYTES = 50_000_000
MOST_GROWTH_KB = 2_048
SLOW = 4  # readers at once, each 1 KB/s
READS_S = 3


def resident_kb(fleet: LiveFleet) -> int:
    assert fleet.gateway is not None
    status = Path(f"/proc/{fleet.gateway.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


async def read_slowly(fleet: LiveFleet, path: str, body: object) -> int:
    """1 KB a second for READS_S, with a small window; the bytes taken."""
    host, port = fleet.gateway_at.split(":")
    loop = asyncio.get_running_loop()
    taken = 0
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.setblocking(False)
        await loop.sock_connect(raw, (host, int(port)))
        await loop.sock_sendall(raw, request(path, body))
        for _ in range(READS_S):
            taken += len(await loop.sock_recv(raw, 1024))
            await asyncio.sleep(1)
    return taken


async def growth_kb(fleet: LiveFleet, path: str, body: object) -> int:
    """By how much SLOW such readers make the gateway grow, while others read as they like."""
    before = resident_kb(fleet)
    readers = [asyncio.ensure_future(read_slowly(fleet, path, body)) for _ in range(SLOW)]
    await asyncio.sleep(READS_S - 0.5)
    grown = resident_kb(fleet) - before
    quick = {**chat_body("quick", stream=True), "max_tokens": 20, "ignore_eos": True}
    async with asyncio.timeout(PATIENCE_S):
        answer = await fleet.stream(CHAT, quick)
    assert answer.done
    taken = await asyncio.gather(*readers)
    assert all(0 < one <= READS_S * 1024 for one in taken)
    return grown


def endless(request: Recorded) -> list[Step]:
    if request.json["messages"][0]["content"] != "long":
        token: list[Step] = [Sleep(0.01), chunk(delta("x"))]
        return [*sse_head(), *(token * 20), *sse_end((5, 20))]
    piece = chunk(delta("y" * 4_000) * 10)
    return [*sse_head(), *([piece] * (STREAM_BYTES // len(piece.data))), *sse_end()]


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="scripted")
async def a_foreign_worker() -> AsyncIterator[tuple[LiveFleet, ScriptedWorker]]:
    async with ScriptedWorker(script=endless) as worker, empty_fleet() as fleet:
        await fleet.start_gateway(urls=[worker.url])
        await fleet.ready_workers(1)
        yield fleet, worker


async def test_of_a_foreign_worker_s_stream(scripted: tuple[LiveFleet, ScriptedWorker]) -> None:
    fleet, worker = scripted
    for _ in range(20):
        await fleet.stream(CHAT, chat_body("warm", stream=True))
    grown = await growth_kb(fleet, CHAT, chat_body("long", stream=True))
    assert grown < MOST_GROWTH_KB * SLOW
    (row,) = await _idle(fleet)
    assert row["in_flight"] == 0
    print(f"{SLOW} slow readers by HTTP: {grown} KB")
    assert len(worker.requests) > SLOW


async def test_of_our_own_worker_s_stream() -> None:
    async with empty_fleet() as fleet:
        worker = await fleet.add_worker("--max-total-tokens", "65536")
        await fleet.start_gateway()
        await fleet.ready_workers(1)
        for _ in range(5):
            await fleet.stream(CHAT, {**chat_body("warm", stream=True), "max_tokens": 20})
        long = {**chat_body("long", stream=True), "max_tokens": 6_000, "ignore_eos": True}
        grown = await growth_kb(fleet, CHAT, long)
        assert grown < MOST_GROWTH_KB * SLOW
        (row,) = await _idle(fleet)
        assert row["in_flight"] == 0
        # It has stopped where the credit ended, and not generated the rest for nobody.
        metrics = (await fleet.get("/metrics", at=worker.http))[2]
        made = _generated(metrics)
        print(f"{SLOW} slow readers by gRPC: {grown} KB, {made} tokens made")
        assert made < SLOW * 3_000


def _generated(metrics: str) -> float:
    lines = [line for line in metrics.splitlines() if not line.startswith("#")]
    return next(float(line.split()[-1]) for line in lines if "generation_tokens_total" in line)


async def _idle(fleet: LiveFleet) -> list[dict[str, object]]:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            rows = await fleet.worker_rows()
            if all(row["in_flight"] == 0 for row in rows):
                return rows
            await asyncio.sleep(0.05)
