"""The walk of one request, end to end, through real processes with the toy model."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from live_fleet import LiveFleet, live_fleet
from until import PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

GREEDY = {"temperature": 0, "ignore_eos": True}


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="fleet")
async def two_workers() -> AsyncIterator[LiveFleet]:
    async with live_fleet(worker_flags=("--max-total-tokens", "8192")) as fleet:
        yield fleet


def chat(content: str, **fields: object) -> dict[str, object]:
    messages = [{"role": "user", "content": content}]
    return {"model": "toy", "messages": messages, "max_tokens": 8, **GREEDY, **fields}


async def test_a_streamed_chat_equals_the_whole_one(fleet: LiveFleet) -> None:
    status, headers, whole = await fleet.post("/v1/chat/completions", chat("hello"))
    assert status == 200, whole
    streamed = await fleet.stream("/v1/chat/completions", chat("hello", stream=True))
    assert streamed.status == 200
    assert streamed.done
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.chat_text == whole["choices"][0]["message"]["content"]
    finishes = [event["choices"][0]["finish_reason"] for event in streamed.events]
    assert finishes[-1] == "length"
    assert set(finishes[:-1]) <= {None}
    assert whole["usage"]["completion_tokens"] == 8
    assert headers["x-radixgate-worker"]
    assert headers["x-radixgate-policy"] == "kv_cost"
    assert headers["x-request-id"]


async def test_the_second_turn_is_cached_and_stays_with_its_worker(fleet: LiveFleet) -> None:
    first_turn = chat("tell me about the prefix cache of this worker")
    _, first_headers, first = await fleet.post("/v1/chat/completions", first_turn)
    reply = first["choices"][0]["message"]
    messages = [*first_turn["messages"], reply, {"role": "user", "content": "go on"}]  # type: ignore[misc]
    _, headers, second = await fleet.post(
        "/v1/chat/completions", {**first_turn, "messages": messages}
    )
    assert headers["x-radixgate-worker"] == first_headers["x-radixgate-worker"]
    cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached >= 16 * (first["usage"]["prompt_tokens"] // 16 - 1) > 0


async def test_generate_by_text_and_by_ids_are_the_same(fleet: LiveFleet) -> None:
    params = {"max_new_tokens": 6, **GREEDY}
    text = "the same bytes"
    _, _, by_text = await fleet.post("/generate", {"text": text, "sampling_params": params})
    ids = list(text.encode())
    _, _, by_ids = await fleet.post("/generate", {"input_ids": ids, "sampling_params": params})
    assert by_text["output_ids"] == by_ids["output_ids"]
    meta = by_text["meta_info"]
    assert meta["prompt_tokens"] == len(ids)
    assert meta["completion_tokens"] == 6
    assert meta["finish_reason"] == {"type": "length", "length": 6}
    assert meta["e2e_latency"] > 0
    assert meta["weight_version"] == "default"


async def test_n_choices_and_seeds(fleet: LiveFleet) -> None:
    params = {"max_new_tokens": 12, "temperature": 0.9, "seed": 42, "n": 4, "ignore_eos": True}
    body = {"text": "The quick", "sampling_params": params}
    _, _, first = await fleet.post("/generate", body)
    _, _, second = await fleet.post("/generate", body)
    texts = [tuple(answer["output_ids"]) for answer in first]
    assert texts == [tuple(answer["output_ids"]) for answer in second]
    assert len(set(texts)) == 4


@pytest.mark.parametrize("path", ["/v1/models", "/health", "/readiness", "/get_model_info"])
async def test_the_gateway_answers_about_itself(fleet: LiveFleet, path: str) -> None:
    status, _, body = await fleet.get(path)
    assert status == 200, body


async def test_the_workers_are_listed_with_their_load(fleet: LiveFleet) -> None:
    rows = await fleet.worker_rows()
    assert [row["state"] for row in rows] == ["ready", "ready"]
    assert {"id", "url", "state", "in_flight", "load", "blocks_mirrored"} <= rows[0].keys()
    assert all(row["in_flight"] == 0 for row in rows)


async def test_a_flush_empties_every_pool(fleet: LiveFleet) -> None:
    await fleet.post("/v1/chat/completions", chat("something to flush away, long enough"))
    status, _, body = await fleet.post("/flush_cache", {})
    assert status == 200, body
    for worker in fleet.workers:
        pages = await fleet.page_counts(worker)
        assert pages["free"] == pages["total"]
    async with asyncio.timeout(PATIENCE_S):
        while any(row["blocks_mirrored"] for row in await fleet.worker_rows()):
            await asyncio.sleep(0.05)


async def test_pages_add_up_at_idle(fleet: LiveFleet) -> None:
    await asyncio.gather(
        *(fleet.post("/v1/chat/completions", chat(f"question {i % 3}")) for i in range(24))
    )
    for worker in fleet.workers:
        pages = await fleet.page_counts(worker)
        assert pages["free"] + pages["evictable"] + pages["locked"] == pages["total"]
        assert pages["locked"] == 0
