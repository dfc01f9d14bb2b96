"""An order to abort, and a client that leaves, reach a request wherever in the gateway it is."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from radixgate.fleet.fleet import MirrorKey
from radixgate.gateway.asking.question import Blocks, Question
from radixgate.gateway.attempt.abort_order import AbortOrder, rid_of
from radixgate.gateway.attempt.attempt import PromptTokens
from radixgate.gateway.attempt.caller import Caller
from radixgate.gateway.observe.metrics import FinalOutcome
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.upstream.pool import UpstreamPool
from radixgate.gateway.workers.http_attempt import HttpAttempt
from radixgate.proto.generation import GenerationRequest
from raw_client import RawClient, request
from scripted_worker import Hang, ScriptedWorker, events, json_answer, sse_head
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import until

STATES = ("queued", "tokenizing", "in-backoff")


@asynccontextmanager
async def held(state: str) -> AsyncIterator[tuple[SmallGateway, ScriptedWorker]]:
    """A gateway that will hold the next request in this state."""
    rules = GatewayRules(
        limits=LimitsConfig(max_concurrent_requests=1 if state == "queued" else 100)
    )
    wait_ms = 60_000.0
    async with (
        ScriptedWorker() as worker,
        small_gateway(
            [worker], rules=rules, retry_initial_backoff_ms=wait_ms, retry_max_backoff_ms=wait_ms
        ) as gateway,
    ):
        worker.admin["/abort_request"] = lambda request: json_answer({})
        if state == "tokenizing":
            hold_tokens(gateway)
        if state == "in-backoff":
            worker.script = lambda request: json_answer({}, 500)
        if state != "queued":
            yield gateway, worker
            return
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        async with RawClient(gateway.port) as first:
            first.send(request(CHAT, chat_body(stream=True, rid="first")))
            await until(lambda: len(worker.requests) == 1)
            yield gateway, worker
        worker.script = lambda request: json_answer({})


def hold_tokens(gateway: SmallGateway) -> None:
    """As if workers of ours served the model, with a tokenizer that never ends."""

    async def never(
        model: str, generation: GenerationRequest, keys: Sequence[MirrorKey]
    ) -> tuple[PromptTokens, Blocks]:
        await asyncio.Event().wait()
        raise AssertionError

    def ours(path: bytes, body: bytes, caller: Caller) -> Question | None:
        return None

    core = gateway.gateway.headquarters.path._core
    assert core is not None
    core.asking.read = ours  # type: ignore[assignment]
    core.asking._prompts.read = never  # type: ignore[method-assign]


def nothing_is_left(gateway: SmallGateway) -> bool:
    metrics, running = gateway.gateway.metrics, gateway.gateway.headquarters.path.held
    return metrics.in_flight == gateway.in_flight() == len(running) == metrics.read_waiting() == 0


async def send(client: RawClient, gateway: SmallGateway, path: str, body: object) -> None:
    before = len(gateway.gateway.headquarters.path.held)
    client.send(request(path, body))
    await until(lambda: len(gateway.gateway.headquarters.path.held) == before + 1)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("state", STATES)
async def test_an_abort_by_rid_ends_it_as_aborted(state: str, stream: bool) -> None:
    async with held(state) as (gateway, worker), RawClient(gateway.port) as client:
        asked = len(worker.requests)
        await send(client, gateway, CHAT, chat_body(stream=stream, rid="mine"))
        other = await gateway.post("/abort_request", {"rid": "min"})
        assert len(gateway.gateway.headquarters.path.held) == 1, other.body
        reply = await gateway.post("/abort_request", {"rid": "mine"})
        assert (reply.status, reply.json["success"]) == (200, True)
        answer = await client.answer()
        assert answer.status == 200
        if stream:
            assert answer.events[-1] == b"[DONE]"
            answer_body = json.loads(answer.events[-2])
        else:
            answer_body = answer.json
        assert answer_body["choices"][0]["finish_reason"] == "abort"
        assert len(worker.requests) <= asked + 1
    assert nothing_is_left(gateway)


@pytest.mark.parametrize("state", STATES)
async def test_native_answers_and_batches_end_as_aborted(state: str) -> None:
    async with held(state) as (gateway, _), RawClient(gateway.port) as client:
        body = {"text": ["a", "b"], "rid": ["r-1", "r-2"]}
        await send(client, gateway, "/generate", body)
        await gateway.post("/abort_request", {"rid": "r-", "prefix": True})
        answer = await client.answer()
        assert answer.status == 200
        kinds = [one["meta_info"]["finish_reason"]["type"] for one in json.loads(answer.body)]
        assert kinds == ["abort", "abort"]
    assert nothing_is_left(gateway)


@pytest.mark.parametrize("state", STATES)
async def test_abort_all_ends_what_is_held(state: str) -> None:
    async with (
        held(state) as (gateway, _),
        RawClient(gateway.port) as one,
        RawClient(gateway.port) as two,
    ):
        for client in (one, two):
            await send(client, gateway, CHAT, chat_body())
        await gateway.post("/abort_request", {"abort_all": True})
        for client in (one, two):
            answer = await client.answer()
            assert answer.json["choices"][0]["finish_reason"] == "abort"
    assert nothing_is_left(gateway)


@pytest.mark.parametrize("state", STATES)
async def test_a_client_that_leaves_is_held_no_more(state: str) -> None:
    async with held(state) as (gateway, worker):
        asked = len(worker.requests)
        left = gateway.gateway.metrics.requests
        async with RawClient(gateway.port) as client:
            await send(client, gateway, CHAT, chat_body())
        await until(lambda: left[FinalOutcome.CLIENT_DISCONNECT] == 1)
        assert len(gateway.gateway.headquarters.path.held) == 0
        assert gateway.in_flight() == (1 if state == "queued" else 0)
        assert len(worker.requests) <= asked + 1
    assert nothing_is_left(gateway)


async def test_what_cannot_be_answered_in_its_own_form_is_an_error() -> None:
    async with held("queued") as (gateway, _), RawClient(gateway.port) as client:
        await send(client, gateway, CHAT, b"{")
        await gateway.post("/abort_request", {"abort_all": True})
        answer = await client.answer()
        assert (answer.status, answer.json["error"]["type"]) == (499, "aborted")


@pytest.mark.parametrize(
    ("order", "body", "meant"),
    [
        pytest.param(AbortOrder(None), {}, True, id="everything"),
        pytest.param(AbortOrder("r"), {"rid": "r"}, True, id="exactly"),
        pytest.param(AbortOrder("r"), {"rid": "r1"}, False, id="longer"),
        pytest.param(AbortOrder("r", prefix=True), {"rid": "r1"}, True, id="prefix"),
        pytest.param(AbortOrder("b"), {"rid": ["a", "b"]}, True, id="of-a-batch"),
        pytest.param(AbortOrder("b"), {"rid": None, "user": "b"}, False, id="another-field"),
        pytest.param(AbortOrder("b"), {"text": '"rid":"b"'}, False, id="in-a-text"),
        pytest.param(AbortOrder("b"), [], False, id="no-object"),
    ],
)
def test_whom_an_order_means(order: AbortOrder, body: Mapping[str, object], meant: bool) -> None:
    assert order.names_any(rid_of(json.dumps(body).encode())) is meant


@pytest.mark.parametrize(
    ("order", "worker_says"),
    [({"rid": "mine"}, 200), ({"abort_all": True}, 200), ({"abort_all": True}, 503)],
)
async def test_who_waits_for_a_connection_ends_as_aborted(
    order: Mapping[str, object], worker_says: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled = asyncio.Event()

    async def never(attempt: HttpAttempt) -> None:
        dialled.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(UpstreamPool, "take_idle", lambda pool: None)
    monkeypatch.setattr(HttpAttempt, "_connect_and_send", never)
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.admin["/abort_request"] = lambda request: json_answer({}, worker_says)
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(rid="mine")))
            await dialled.wait()
            reply = await gateway.post("/abort_request", order)
            assert (reply.status, reply.json["success"]) == (200, True)
            answer = await client.answer()
            assert answer.status == 200
            assert answer.json["choices"][0]["finish_reason"] == "abort"
        told = [one for one in worker.admin_requests if one.path == "/abort_request"]
        assert len(told) == ("rid" not in order)
        assert not worker.requests
        assert nothing_is_left(gateway)
