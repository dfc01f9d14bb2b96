"""kill -9 under load: what was not answered moves, the dead one is listed, and returns cold."""

import asyncio
import signal
import time

import pytest

from live_fleet import LiveFleet, live_fleet

pytestmark = pytest.mark.slow


async def ask(fleet: LiveFleet, number: int) -> int:
    body = {
        "model": "toy",
        "messages": [{"role": "user", "content": f"request number {number} " * 20}],
        "max_tokens": 4,
        "temperature": 0,
        "ignore_eos": True,
    }
    status, _, _ = await fleet.post("/v1/chat/completions", body)
    return status


async def test_unanswered_requests_move_and_the_worker_returns_cold() -> None:
    # So rarely checked, a worker that has died is told by its broken connection.
    checks = ("--health-check-interval-secs", "20")
    flags = ("--max-total-tokens", "16384")
    async with live_fleet(2, worker_flags=flags, gateway_flags=checks) as fleet:
        began = time.perf_counter()
        assert [await ask(fleet, i) for i in range(6)] == [200] * 6
        six_s = time.perf_counter() - began
        victim = fleet.workers[0]
        port, grpc_port = victim.http.rsplit(":", 1)[1], victim.grpc.rsplit(":", 1)[1]
        load = asyncio.gather(*(ask(fleet, i) for i in range(40)))
        await asyncio.sleep(0.05)
        victim.child.send(signal.SIGKILL)
        # Three seconds, and what sixty answers in turn take on this machine.
        rows = await fleet.ready_workers(1, within_s=3.0 + 10 * six_s)
        (down,) = [row for row in rows if row["state"] != "ready"]
        assert down["state"] == "down"
        assert await load == [200] * 40

        await victim.child.wait()
        await fleet.add_worker(
            "--port", port, "--grpc-port", grpc_port, "--max-total-tokens", "16384"
        )
        rows = await fleet.ready_workers(2)
        (back,) = [row for row in rows if row["id"] == down["id"]]
        assert back["blocks_mirrored"] == 0
        assert await asyncio.gather(*(ask(fleet, 100 + i) for i in range(20))) == [200] * 20
        rows = await fleet.worker_rows()
        assert all(row["blocks_mirrored"] > 0 for row in rows), "the returned worker is used again"
        assert all(row["in_flight"] == 0 for row in rows)
