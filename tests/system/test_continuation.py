"""A worker of ours dies mid-answer: the stream goes on at another, and nobody can tell."""

import asyncio
import signal
from typing import Any

import pytest

from live_fleet import LiveFleet, Streamed, live_fleet
from until import PATIENCE_S

pytestmark = pytest.mark.slow
TOKENS = 600


def body(number: int, **fields: object) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"story number {number}, please"}]
    sampled = {"temperature": 0.9, "seed": number} if number % 2 else {"temperature": 0}
    return {
        "messages": messages,
        "max_tokens": TOKENS,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        **sampled,
        **fields,
    }


def told(answer: Streamed) -> tuple[list[str], Any]:
    """The text of each choice, and what was counted."""
    texts: dict[int, str] = {}
    finishes = []
    for event in answer.events:
        assert "error" not in event, event
        for choice in event["choices"]:
            index = choice["index"]
            texts[index] = texts.get(index, "") + (choice["delta"].get("content") or "")
            if choice["finish_reason"]:
                finishes.append((index, choice["finish_reason"]))
    assert answer.done
    assert sorted(finishes) == [(index, "length") for index in sorted(texts)]
    return [texts[index] for index in sorted(texts)], answer.events[-1]["usage"][
        "completion_tokens"
    ]


async def test_streams_of_a_killed_worker_go_on_unbroken() -> None:
    async with live_fleet(2, worker_flags=("--max-total-tokens", "32768")) as fleet:
        bodies = [body(number) for number in range(6)] + [body(7, n=2)]
        asked = [asyncio.ensure_future(fleet.stream("/v1/chat/completions", one)) for one in bodies]
        whole = asyncio.ensure_future(whole_answer(fleet))
        await all_in_flight(fleet, len(bodies) + 1)
        await asyncio.sleep(0.5)
        fleet.workers[0].child.send(signal.SIGKILL)
        disturbed = [told(answer) for answer in await asyncio.gather(*asked)]
        disturbed_whole = await whole
        rows = await fleet.ready_workers(1)
        assert all(row["in_flight"] == 0 for row in rows)
        undisturbed = [told(await fleet.stream("/v1/chat/completions", one)) for one in bodies]
        assert disturbed == undisturbed
        assert [tokens for _, tokens in disturbed] == [TOKENS] * 6 + [2 * TOKENS]
        assert disturbed_whole == await whole_answer(fleet)
        metrics = (await fleet.get("/metrics"))[2]
        assert 'radixgate_requests_total{outcome="upstream_error"} 0' in metrics or (
            "upstream_error" not in metrics
        )


async def whole_answer(fleet: LiveFleet) -> list[int]:
    params = {"max_new_tokens": TOKENS, "temperature": 0.8, "seed": 5, "ignore_eos": True}
    status, _, answer = await fleet.post("/generate", {"text": "all", "sampling_params": params})
    assert status == 200, answer
    ids: list[int] = answer["output_ids"]
    assert answer["meta_info"]["completion_tokens"] == len(ids) == TOKENS
    return ids


async def all_in_flight(fleet: LiveFleet, requests: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while sum(row["in_flight"] for row in await fleet.worker_rows()) < requests:
            await asyncio.sleep(0.01)
