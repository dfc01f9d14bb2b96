"""SIGTERM to a worker under load: what runs ends there, nothing new comes, nobody sees an error."""

import asyncio
import signal

import pytest

from live_fleet import LiveFleet, live_fleet
from until import PATIENCE_S

pytestmark = pytest.mark.slow


async def ask(fleet: LiveFleet, number: int, tokens: int) -> int:
    params = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
    body = {"text": f"question {number} of many " * 8, "sampling_params": params}
    status, _, answer = await fleet.post("/generate", body)
    if status == 200:
        assert answer["meta_info"]["completion_tokens"] == tokens
    return status


async def test_a_draining_worker_ends_what_it_has_and_gets_nothing_new() -> None:
    async with live_fleet(2, worker_flags=("--max-total-tokens", "32768")) as fleet:
        leaving = fleet.workers[0]
        long = [asyncio.ensure_future(ask(fleet, i, 400)) for i in range(6)]
        async with asyncio.timeout(PATIENCE_S):
            while sum(row["in_flight"] for row in await fleet.worker_rows()) < 6:
                await asyncio.sleep(0.01)
        leaving.child.send(signal.SIGTERM)
        later = [await ask(fleet, 100 + i, 2) for i in range(20)]
        assert later == [200] * 20
        assert await asyncio.gather(*long) == [200] * 6
        assert await leaving.child.wait() == 0
        metrics = (await fleet.get("/metrics"))[2]
        retries = [line for line in metrics.splitlines() if line.startswith("radixgate_retries")]
        assert retries, "the refusals of the draining worker were tried elsewhere, or never came"
        rows = await fleet.ready_workers(1)
        assert all(row["in_flight"] == 0 for row in rows)
