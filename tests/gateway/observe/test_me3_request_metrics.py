"""ME3: a request is counted once, by how it ended; times are those of tokens and last bytes."""

import asyncio
import json

import pytest

from raw_client import RawClient, request
from scripted_worker import (
    Recorded,
    Reset,
    ScriptedWorker,
    Sleep,
    Step,
    chat_answer,
    chunk,
    events,
    json_answer,
    sse_end,
    sse_head,
)
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import until

pytestmark = pytest.mark.slow

RETRIES = 2
ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
KINDS = ("stream", "whole", "wrong", "busy-once", "never", "cut", "leaves", "role-first")
_STREAMED = ("stream", "cut", "leaves", "role-first")


def steps(request: Recorded, seen: dict[str, int]) -> list[Step]:
    kind = str(request.json["messages"][0]["content"])
    seen[kind] = seen.get(kind, 0) + 1
    token = [*sse_head(), Sleep(0.3), *events("a")]
    match kind:
        case "stream":
            return [*token, Sleep(0.7), *sse_end((5, 2))]
        case "whole":
            return [Sleep(0.5), *chat_answer()]
        case "wrong":
            return json_answer({"error": {"message": "no"}}, 400)
        case "busy-once":
            return json_answer({}, 503) if seen[kind] == 1 else chat_answer()
        case "never":
            return json_answer({}, 500)
        case "cut":
            return [*token, Reset()]
        case "leaves":
            return [*sse_head(), Sleep(30)]
    return [*sse_head(), Sleep(0.05), chunk(ROLE), Sleep(0.25), *events("a"), *sse_end((5, 2))]


async def ask(gateway: SmallGateway, kind: str) -> None:
    async with RawClient(gateway.port) as client:
        client.send(request(CHAT, chat_body(kind, stream=kind in _STREAMED)))
        if kind == "leaves":
            await until(lambda: gateway.in_flight() == 1)
        else:
            await client.answer()


async def below(gateway: SmallGateway, name: str, bound: str) -> float:
    return await gateway.counter(f"radixgate_{name}_seconds_bucket", le=bound)


async def test_me3_one_request_of_each_kind() -> None:
    seen: dict[str, int] = {}
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], retry_max_retries=RETRIES) as gateway,
    ):
        worker.script = lambda request: steps(request, seen)
        await ask(gateway, "stream")
        # The whole of it, not the time to its head: the token came at .3 s.
        assert await below(gateway, "request_duration", "0.5") == 0
        assert await below(gateway, "ttft", "0.25") == 0
        await asyncio.gather(*(ask(gateway, kind) for kind in KINDS[1:]))
        metrics = gateway.gateway.metrics
        await until(lambda: metrics.in_flight == 0)
        counted = {
            outcome: await gateway.counter("radixgate_requests_total", outcome=outcome)
            for outcome in ("ok", "client_error", "upstream_error", "client_disconnect", "rejected")
        }
        assert counted == {
            "ok": 4,
            "client_error": 1,
            "upstream_error": 2,
            "client_disconnect": 1,
            "rejected": 0,
        }
        attempts = await gateway.counter("radixgate_attempts_total")
        assert attempts == sum(seen.values()) == 8 + (1 + RETRIES)
        assert await gateway.counter("radixgate_retries_total") == attempts - 8
        # Error bodies, whole answers and roles are no first tokens.
        assert await gateway.counter("radixgate_ttft_seconds_count") == 3
        assert await below(gateway, "ttft", "0.25") == 0
        assert await gateway.counter("radixgate_request_duration_seconds_count") == 8
        assert await gateway.counter("radixgate_in_flight") == 0
        rows = json.loads((await gateway.get("/workers")).body)["workers"]
        assert [row["in_flight"] for row in rows] == [0]
