"""The network between gateway and worker is cut: what was cached meanwhile is known afterwards."""

import asyncio
from typing import Any

import pytest

from cut_proxy import CutProxy
from live_fleet import LiveFleet, empty_fleet

pytestmark = pytest.mark.slow

PROMPT = "a prompt that fills several pages of the cache, and more than one of them "


def body(number: int) -> dict[str, Any]:
    return {
        "model": "toy",
        "messages": [{"role": "user", "content": f"{number} {PROMPT * 4}"}],
        "max_tokens": 2,
        "temperature": 0,
    }


async def mirror_is_right(fleet: LiveFleet, within_s: float = 10.0) -> int:
    """Wait until the gateway holds exactly the blocks that the idle worker has cached; how many."""
    worker = fleet.workers[0]
    mirrored = cached = -1
    try:
        async with asyncio.timeout(within_s):
            while True:
                pages = await fleet.page_counts(worker)
                (row,) = await fleet.worker_rows()
                cached, mirrored = pages["evictable"], row["blocks_mirrored"]
                if row["state"] == "ready" and mirrored == cached and row["in_flight"] == 0:
                    return cached
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{mirrored} blocks are mirrored, {cached} are cached") from None


@pytest.mark.parametrize("flushed", [False, True])
async def test_what_happens_behind_a_cut_is_known_after_it(flushed: bool) -> None:
    async with empty_fleet() as fleet:
        worker = await fleet.add_worker("--max-total-tokens", "16384")
        async with CutProxy(int(worker.grpc.rsplit(":", 1)[1])) as proxy:
            await fleet.start_gateway(
                "--health-check-interval-secs", "0.2", urls=[f"grpc://127.0.0.1:{proxy.port}"]
            )
            await fleet.ready_workers(1)
            for number in range(3):
                status, _, answer = await fleet.post("/v1/chat/completions", body(number))
                assert status == 200, answer
            before = await mirror_is_right(fleet)
            assert before > 10
            await proxy.cut()
            if flushed:
                await fleet.post("/flush_cache", {}, at=worker.http)
            for number in range(3, 3 + (1 if flushed else 4)):
                status, _, _ = await fleet.post(
                    "/v1/chat/completions", body(number), at=worker.http
                )
                assert status == 200
            await proxy.restore()
            after = await mirror_is_right(fleet)
            assert (after < before) if flushed else (after > before)
            # A prompt that only came behind the cut is believed to be there, and is.
            _, _, answer = await fleet.post("/v1/chat/completions", body(3))
            assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 100
            metrics = (await fleet.get("/metrics"))[2]
            predicted = next(
                float(line.split()[1])
                for line in metrics.splitlines()
                if line.startswith("radixgate_predicted_cached_tokens_total")
            )
            assert predicted > 100
