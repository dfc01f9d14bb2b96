"""A gateway that is started again knows at once what its workers have cached."""

import asyncio
from pathlib import Path

import pytest

from live_fleet import LiveFleet, live_fleet
from until import PATIENCE_S

pytestmark = pytest.mark.slow
CHAT = "/v1/chat/completions"


async def mirrored(fleet: LiveFleet) -> dict[str, int]:
    return {row["id"]: row["blocks_mirrored"] for row in await fleet.worker_rows()}


async def test_the_next_gateway_begins_where_the_last_one_ended(tmp_path: Path) -> None:
    kept = tmp_path / "mirror"
    flags = ("--mirror-file", str(kept), "--policy", "round_robin")
    async with live_fleet(2, gateway_flags=flags) as fleet:
        for number in range(6):
            content = f"question {number} " * 20
            body = {"messages": [{"role": "user", "content": content}], "max_tokens": 4}
            status, _, _ = await fleet.post(CHAT, body)
            assert status == 200
        before = await mirrored(fleet)
        assert min(before.values()) > 10
        assert fleet.gateway is not None
        await fleet.gateway.stop(10.0)
        assert kept.stat().st_size > 8 * sum(before.values())
        # A life of the worker's own in between: its updates come from the worker's ring.
        await fleet.post("/generate", {"text": "a text of its own " * 9}, at=fleet.workers[0].http)

        await fleet.start_gateway(*flags)
        await fleet.ready_workers(2)

        async with asyncio.timeout(PATIENCE_S):
            # What was kept counts with the first heartbeat, one a second.
            while min((after := await mirrored(fleet)).values()) == 0:
                await asyncio.sleep(0.05)
        assert sum(after.values()) > sum(before.values())
        assert min(after[name] - before[name] for name in before) >= 0
