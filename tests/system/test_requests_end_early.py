"""Aborts and lost clients, end to end: the engine stops, pages come back, others go on."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from live_fleet import LiveFleet, live_fleet
from until import PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

MOST_TOKENS = 4000
RATED_TOKENS = 200  # a yardstick for how many this machine makes in a second
LONG = {"max_new_tokens": MOST_TOKENS, "temperature": 0, "ignore_eos": True}


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="fleet")
async def one_worker() -> AsyncIterator[LiveFleet]:
    flags = ("--page-size", "4", "--chunked-prefill-size", "8", "--max-total-tokens", "16384")
    async with live_fleet(1, worker_flags=flags) as fleet:
        yield fleet


async def remain(fleet: LiveFleet, count: int) -> dict[str, int]:
    """The worker's page counts once so many requests run and are in flight, and none waits."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            _, _, info = await fleet.get("/get_server_info", at=fleet.workers[0].http)
            (row,) = await fleet.worker_rows()
            if info["running"] == row["in_flight"] == count and info["waiting"] == 0:
                pages: dict[str, int] = info["pages"]
                return pages
            await asyncio.sleep(0.02)


async def idle(fleet: LiveFleet) -> None:
    assert (await remain(fleet, 0))["locked"] == 0


def generate(fleet: LiveFleet, rid: str, **params: object) -> "asyncio.Task[tuple[int, object]]":
    body = {"text": f"request {rid} ", "rid": rid, "sampling_params": {**LONG, **params}}

    async def post() -> tuple[int, object]:
        status, _, answer = await fleet.post("/generate", body)
        return status, answer

    return asyncio.ensure_future(post())


async def running(fleet: LiveFleet, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await fleet.worker_rows())[0]["in_flight"] != count:
            await asyncio.sleep(0.01)


async def both_run(fleet: LiveFleet) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await fleet.get("/get_server_info", at=fleet.workers[0].http))[2]["running"] != 2:
            await asyncio.sleep(0.01)


async def has_made(fleet: LiveFleet, count: float) -> float:
    """All tokens made so far, once they are at least `count`."""
    async with asyncio.timeout(PATIENCE_S):
        while (made := await fleet.tokens_made(fleet.workers[0])) < count:
            await asyncio.sleep(0.01)
    return made


async def token_rate(fleet: LiveFleet) -> float:
    """Tokens that are made in a second, of the requests that run: as fast as this machine is."""
    began, before = time.perf_counter(), await fleet.tokens_made(fleet.workers[0])
    made = await has_made(fleet, before + RATED_TOKENS) - before
    return made / (time.perf_counter() - began)


@pytest.mark.parametrize("through", ["gateway", "worker"])
@pytest.mark.parametrize("stream", [False, True])
async def test_g02_a_client_that_leaves_stops_the_engine(
    fleet: LiveFleet, through: str, stream: bool
) -> None:
    """Another request goes on beside it: its tokens are the clock by which the engine stops, for
    one that nobody reads makes no more of its own, long before it is told to end."""
    at = fleet.gateway_at if through == "gateway" else fleet.workers[0].http
    beside = generate(fleet, "beside")
    await running(fleet, 1)
    body = {"text": "x" * 32, "sampling_params": LONG, "stream": stream}
    asked = asyncio.ensure_future(fleet.post("/generate", body, at))
    await both_run(fleet)
    a_second = await token_rate(fleet)
    assert not asked.done()
    left = await fleet.tokens_made(fleet.workers[0])
    asked.cancel()
    await remain(fleet, 1)
    assert await fleet.tokens_made(fleet.workers[0]) - left < a_second
    assert not beside.done()
    await fleet.post("/abort_request", {"rid": "beside"})
    await beside
    await idle(fleet)


async def test_w03_an_abort_by_rid_is_exact_and_answered(fleet: LiveFleet) -> None:
    before = await fleet.tokens_made(fleet.workers[0])
    one, ten = generate(fleet, "req-1"), generate(fleet, "req-10", max_new_tokens=2000)
    await running(fleet, 2)
    await has_made(fleet, before + 2)
    a_second = await token_rate(fleet)
    assert not one.done()
    asked = await fleet.tokens_made(fleet.workers[0])
    status, _, _ = await fleet.post("/abort_request", {"rid": "req-1"})
    assert status == 200
    async with asyncio.timeout(PATIENCE_S):
        status, answer = await one
    assert await fleet.tokens_made(fleet.workers[0]) - asked < a_second
    assert status == 200
    assert answer["meta_info"]["finish_reason"]["type"] == "abort"  # type: ignore[index]
    status, answer = await ten
    assert answer["meta_info"]["completion_tokens"] == 2000  # type: ignore[index]
    await idle(fleet)


@pytest.mark.parametrize("through", ["gateway", "worker"])
async def test_an_answer_without_a_rid_can_be_aborted_by_the_id_it_tells(
    fleet: LiveFleet, through: str
) -> None:
    at = fleet.gateway_at if through == "gateway" else fleet.workers[0].http
    body = {"text": ["one", "two"], "sampling_params": LONG, "stream": True}
    told: dict[int, str] = {}
    ends: dict[int, str] = {}
    async with fleet.session.post(f"http://{at}/generate", json=body) as answer:
        async for line in answer.content:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            meta = event["meta_info"]
            if told.setdefault(event["index"], meta["id"]) and len(told) == 2 and not ends:
                ends[-1] = "asked"
                await fleet.post("/abort_request", {"rid": told[0]}, at)
            if meta["finish_reason"] is not None:
                ends[event["index"]] = meta["finish_reason"]["type"]
                if event["index"] == 0:
                    await fleet.post("/abort_request", {"rid": told[1]}, at)
    assert told[0] != told[1]
    assert (ends[0], ends[1]) == ("abort", "abort")
    await idle(fleet)


async def test_w03_a_live_rid_is_refused_and_a_finished_one_used_again(fleet: LiveFleet) -> None:
    first = generate(fleet, "dup", max_new_tokens=1500)
    await running(fleet, 1)
    status, answer = await generate(fleet, "dup")
    assert status in (400, 409), answer
    status, _ = await first
    assert status == 200
    status, _ = await generate(fleet, "dup", max_new_tokens=2)
    assert status == 200


async def test_w03_abort_all_ends_everything_and_the_server_goes_on(fleet: LiveFleet) -> None:
    before = await fleet.tokens_made(fleet.workers[0])
    asked = [generate(fleet, f"all-{i}") for i in range(6)]
    await running(fleet, 6)
    await has_made(fleet, before + 6)
    a_second = await token_rate(fleet)
    told = await fleet.tokens_made(fleet.workers[0])
    await fleet.post("/abort_request", {"abort_all": True})
    async with asyncio.timeout(PATIENCE_S):
        answers = await asyncio.gather(*asked)
    assert await fleet.tokens_made(fleet.workers[0]) - told < a_second
    kinds = [answer["meta_info"]["finish_reason"]["type"] for _, answer in answers]  # type: ignore[index]
    assert kinds == ["abort"] * 6
    await idle(fleet)
    status, _ = await generate(fleet, "after", max_new_tokens=2)
    assert status == 200
