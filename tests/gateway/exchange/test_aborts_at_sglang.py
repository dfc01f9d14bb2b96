"""A stream that a worker ends as it was told to is no failure of the worker's, however it ends."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import Answer, RawClient, request
from scripted_worker import (
    Await,
    Raw,
    Reset,
    ScriptedWorker,
    Step,
    chunk,
    delta,
    events,
    json_answer,
    sse_head,
)
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import until

RULES = GatewayRules(
    reliability=ReliabilityConfig(cb_failure_threshold=1, cb_timeout_duration_secs=60.0)
)
DONE, LAST = b"data: [DONE]\n\n", Raw(b"0\r\n\r\n")
ERROR = b'data: {"error":{"message":"aborted","code":500}}\n\n'
CUT = b'data: {"choi'

ENDS = [
    pytest.param([chunk(delta("", "abort") + DONE), LAST], id="with-a-finish"),
    pytest.param([chunk(ERROR + DONE), LAST], id="with-an-error"),
    pytest.param([Reset()], id="it-breaks-off"),
    pytest.param([chunk(CUT), Reset()], id="within-an-event"),
    pytest.param([LAST], id="without-a-finish"),
]


def text_of(event: bytes) -> str:
    return str(json.loads(event)["choices"][0]["delta"]["content"])


async def aborted(
    gateway: SmallGateway,
    worker: ScriptedWorker,
    end: Sequence[Step],
    path: str = CHAT,
    *,
    taken: bool = True,
) -> Answer:
    """What the client of a running stream gets when that is aborted by order. The stream ends on
    that at once, or behind the worker's answer if it takes no orders."""
    go_on = asyncio.Event()

    def take(_: object) -> list[Step]:
        if taken:
            go_on.set()
        return json_answer({}, 200 if taken else 404)

    worker.admin["/abort_request"] = take
    worker.script = lambda request: [*sse_head(), *events("a"), Await(go_on), *end]
    async with RawClient(gateway.port) as client:
        client.send(request(path, {**chat_body(stream=True, rid="mine"), "input": "a"}))
        await until(lambda: len(worker.requests) == 1)
        await gateway.post("/abort_request", {"rid": "mine"})
        go_on.set()
        return await client.answer()


@pytest.mark.parametrize("end", ENDS)
async def test_it_counts_as_an_aborted_answer_of_ours_does(end: Sequence[Step]) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=RULES) as gateway:
        answer = await aborted(gateway, worker, end)
        assert (answer.status, answer.cut, answer.events[-1]) == (200, False, b"[DONE]")
        assert text_of(answer.events[0]) == "a"
        ended = [b"abort" in event for event in answer.events[1:]]
        assert sum(ended) == 1
        assert await gateway.counter("radixgate_requests_total", outcome="ok") == 1
        name = f"127.0.0.1:{worker.port}"
        assert await gateway.counter("radixgate_worker_failures_total", worker=name) == 0
        assert (await gateway.get(f"/workers/{name}")).json["breaker"] == "closed"
        await until(lambda: gateway.in_flight() == 0)


async def test_a_form_without_an_end_by_order_gets_an_error_and_blames_nobody() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=RULES) as gateway:
        answer = await aborted(gateway, worker, [Reset()], "/v1/responses")
        assert (answer.status, answer.cut, answer.events[-1]) == (200, False, b"[DONE]")
        assert json.loads(answer.events[-2])["error"]["type"] == "aborted"
        name = f"127.0.0.1:{worker.port}"
        assert (await gateway.get(f"/workers/{name}")).json["breaker"] == "closed"


@pytest.mark.parametrize("end", ENDS[1:])
async def test_a_worker_that_takes_no_such_order_has_failed(end: Sequence[Step]) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=RULES) as gateway:
        await aborted(gateway, worker, end, taken=False)
        assert await gateway.counter("radixgate_requests_total", outcome="upstream_error") == 1
        name = f"127.0.0.1:{worker.port}"
        assert (await gateway.get(f"/workers/{name}")).json["breaker"] == "open"
