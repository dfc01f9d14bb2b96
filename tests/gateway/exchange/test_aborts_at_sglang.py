"""A stream that a worker ends as it was told to is no failure of the worker's, however it ends."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from radixgate.gateway.attempt.abort_order import rid_of
from radixgate.gateway.attempt.aborted_answer import aborted_answer
from radixgate.gateway.attempt.broken_stream import BrokenStream
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.workers import http_attempt
from raw_client import Answer, RawClient, request
from scripted_worker import (
    Await,
    Raw,
    Reset,
    ScriptedWorker,
    Sleep,
    Step,
    chunk,
    delta,
    events,
    json_answer,
    sse_end,
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
        texts = {"input": "a"} if path != "/generate" else {"text": "a"}
        body = {**chat_body(stream=True, rid="mine"), **texts}
        if path == "/generate":
            del body["messages"], body["model"]
        client.send(request(path, body))
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
        assert await gateway.counter("radixgate_requests_total", outcome="ok") == 1
        name = f"127.0.0.1:{worker.port}"
        assert (await gateway.get(f"/workers/{name}")).json["breaker"] == "closed"


@pytest.mark.parametrize(
    ("path", "event"),
    [
        pytest.param(CHAT, json.loads(delta("a")[6:]) | {"id": "a-7"}, id="chat"),
        pytest.param(
            "/generate",
            {"text": "one two", "meta_info": {"completion_tokens": 2, "finish_reason": None}},
            id="generate",
        ),
    ],
)
async def test_the_end_behind_a_broken_stream_goes_on_from_its_last_event(
    path: str, event: dict[str, object]
) -> None:
    begun = b"data: " + json.dumps(event).encode() + b"\n\n"
    async with ScriptedWorker() as worker, small_gateway([worker], rules=RULES) as gateway:
        end_of_it: list[Step] = [
            chunk(begun + CUT),
            Sleep(0),
            Reset(),
        ]  # no reset before it is read
        answer = await aborted(gateway, worker, end_of_it, path)
        end, done = map(bytes.strip, answer.events[-2:])
        told = json.loads(end)
    assert (answer.cut, done) == (False, b"[DONE]")
    assert [told.get(name) for name in ("id", "text")] == [event.get("id"), event.get("text")]
    assert b'"role"' not in end
    assert b'"usage"' not in end
    assert b'"completion_tokens":2' in end or path == CHAT


@pytest.mark.parametrize(
    ("info", "text"),
    [
        pytest.param({"incremental_streaming_output": True}, "", id="it-sends-pieces"),
        pytest.param({"incremental_streaming_output": False}, "one", id="it-sends-all"),
        pytest.param({}, "one", id="it-does-not-say"),
    ],
)
async def test_behind_one_event_of_generate_its_text_comes_again_where_all_of_it_does(
    info: dict[str, object], text: str
) -> None:
    meta = {"completion_tokens": 1, "finish_reason": None}
    event = {"text": "one", "output_ids": [7], "meta_info": meta}
    begun = b"data: " + json.dumps(event).encode() + b"\n\n"
    async with ScriptedWorker() as worker:
        worker.admin["/get_server_info"] = lambda _: json_answer(info)
        async with small_gateway([worker], rules=RULES) as gateway:
            told = asyncio.Event()

            def take(_: object) -> list[Step]:
                told.set()
                return json_answer({})

            worker.admin["/abort_request"] = take
            worker.script = lambda _: [*sse_head(), chunk(begun), Await(told), Reset()]
            async with RawClient(gateway.port) as client:
                client.send(request("/generate", {"text": "a", "stream": True, "rid": "mine"}))
                await client.reader.readuntil(b"one")
                await gateway.post("/abort_request", {"rid": "mine"})
                rest = await client.reader.readuntil(b"[DONE]")
    end = json.loads(rest.split(b"data: ")[-2])
    assert (end["text"], end["output_ids"]) == (text, [7] if text else [])


def test_a_request_that_ours_would_refuse_has_an_end_as_well() -> None:
    picture = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    body = chat_body(messages=[{"role": "user", "content": picture}])
    broken = BrokenStream([delta("a")[6:]])
    answer = aborted_answer(CHAT.encode(), json.dumps(body).encode(), "r", None, broken)
    assert (answer.status, answer.rest.count(b'"finish_reason":"abort"')) == (200, 1)


async def test_what_does_not_stream_and_has_begun_to_go_out_is_cut() -> None:
    """Its JSON has no end that could be put behind half of it."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 90000\r\n\r\n"
    async with ScriptedWorker() as worker, small_gateway([worker], rules=RULES) as gateway:
        told = asyncio.Event()

        def take(_: object) -> list[Step]:
            told.set()
            return json_answer({})

        worker.admin["/abort_request"] = take
        worker.script = lambda request: [Raw(head + b"x" * 70_000), Await(told), Reset()]
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(rid="mine")))
            assert b"content-length: 90000\r\n" in await client.reader.readuntil(b"\r\n\r\n")
            assert await client.reader.readexactly(70_000) == b"x" * 70_000
            await gateway.post("/abort_request", {"rid": "mine"})
            assert await client.ended()
        assert await gateway.counter("radixgate_requests_total", outcome="ok") == 1
        name = f"127.0.0.1:{worker.port}"
        assert (await gateway.get(f"/workers/{name}")).json["breaker"] == "closed"


@pytest.mark.parametrize("used", [False, True], ids=["new-connection", "kept-connection"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("end", [[Reset()], json_answer({}, 500)], ids=["reset", "500"])
async def test_what_has_not_begun_is_not_run_elsewhere(
    end: Sequence[Step], stream: bool, used: bool
) -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other], rules=RULES) as gateway,
    ):
        told = asyncio.Event()

        def take(_: object) -> list[Step]:
            told.set()
            return json_answer({})

        if used:
            assert [(await gateway.chat()).status for _ in range(4)] == [200] * 4
        before = len(worker.requests) + len(other.requests)
        for one in (worker, other):
            one.admin["/abort_request"] = take
            one.script = lambda request: [Await(told), *end]
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(stream=stream, rid="mine")))
            await until(lambda: len(worker.requests) + len(other.requests) == before + 1)
            await gateway.post("/abort_request", {"rid": "mine"})
            answer = await client.answer()
        assert (answer.status, answer.cut, b'"abort"' in answer.body) == (200, False, True)
        assert len(worker.requests) + len(other.requests) == before + 1
        assert await gateway.counter("radixgate_retries_total") == 0
        assert await gateway.counter("radixgate_requests_total", outcome="upstream_error") == 0
        for one in (worker, other):
            told_of = (await gateway.get(f"/workers/127.0.0.1:{one.port}")).json
            assert told_of["breaker"] == "closed"
        await until(lambda: gateway.in_flight() == 0)


async def test_an_order_that_is_refused_takes_back_no_other() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=RULES) as gateway:
        go_on, refuse = asyncio.Event(), asyncio.Event()
        taken, refused = json_answer({}), [Await(refuse), *json_answer({}, 404)]
        worker.admin["/abort_request"] = lambda order: refused if "prefix" in order.json else taken
        worker.script = lambda request: [*sse_head(), *events("a"), Await(go_on), Reset()]
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(stream=True, rid="mine")))
            await until(lambda: len(worker.requests) == 1)
            orders = len(worker.admin_requests)
            prefix = {"rid": "mi", "prefix": True}
            late = asyncio.create_task(gateway.post("/abort_request", prefix))
            await until(lambda: len(worker.admin_requests) > orders)
            await gateway.post("/abort_request", {"rid": "mine"})
            refuse.set()
            await late
            go_on.set()
            answer = await client.answer()
        assert b'"abort"' in answer.body
        assert await gateway.counter("radixgate_requests_total", outcome="ok") == 1


async def test_a_body_is_read_once_however_many_orders_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[bytes] = []

    def reads(body: bytes) -> object:
        read.append(body)
        return rid_of(body)

    monkeypatch.setattr(http_attempt, "rid_of", reads)
    async with ScriptedWorker() as worker, small_gateway([worker], rules=RULES) as gateway:
        go_on = asyncio.Event()
        worker.script = lambda request: [*sse_head(), *events("a"), Await(go_on), *sse_end()]
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(stream=True, rid="mine")))
            await until(lambda: len(worker.requests) == 1)
            for number in range(3):  # each refused, too
                await gateway.post("/abort_request", {"rid": f"other-{number}"})
            go_on.set()
            assert (await client.answer()).events[-1] == b"[DONE]"
    assert read == [worker.requests[0].body]


@pytest.mark.parametrize("end", ENDS[1:])
async def test_a_worker_that_takes_no_such_order_has_failed(end: Sequence[Step]) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=RULES) as gateway:
        await aborted(gateway, worker, end, taken=False)
        assert await gateway.counter("radixgate_requests_total", outcome="upstream_error") == 1
        name = f"127.0.0.1:{worker.port}"
        assert (await gateway.get(f"/workers/{name}")).json["breaker"] == "open"
