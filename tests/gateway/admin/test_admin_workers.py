"""Workers by HTTP: paused, resumed, labelled, by the older routes, and how loaded they are."""

import asyncio
import gzip
import json

import pytest

from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import RawClient, request
from scripted_worker import Await, Hang, ScriptedWorker, events, json_answer, sse_end, sse_head
from small_gateway import CHAT, chat_body, small_gateway
from until import until


async def test_a_paused_worker_ends_what_runs_and_is_given_nothing() -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other]) as gateway,
    ):
        word = asyncio.Event()
        worker.script = lambda request: [*sse_head(), Await(word), *events("a", "b"), *sse_end()]
        running = asyncio.create_task(gateway.chat_first_at(worker, stream=True))
        await until(lambda: len(worker.requests) == 1)
        name = f"/workers/127.0.0.1:{worker.port}"
        reply = await gateway.put(name, {"state": "paused", "labels": {"zone": "a"}})
        assert (reply.status, reply.json["state"], reply.json["labels"]) == (
            200,
            "paused",
            {"zone": "a"},
        )
        word.set()
        assert len((await running).events) == 4
        for _ in range(4):
            assert (await gateway.chat()).status == 200
        assert len(worker.requests) == 1
        # Its checks go on and change nothing.
        checks = len(worker.admin_requests)
        await until(lambda: len(worker.admin_requests) > checks + 2)
        assert gateway.state_of(worker) is WorkerState.PAUSED
        assert (await gateway.put(name, {"state": "ready"})).json["state"] == "ready"
        worker.script = other.script
        await gateway.chat_first_at(worker)


async def test_a_paused_worker_that_was_away_is_still_paused() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        await gateway.put(f"/workers/{worker.url}", {"state": "paused"})
        assert (await gateway.chat()).status == 503
        await worker.stop()
        await until(lambda: gateway.state_of(worker) is WorkerState.DOWN)
        await worker.start()
        await until(lambda: gateway.state_of(worker) is WorkerState.PAUSED)


async def test_a_worker_that_is_added_again_while_it_drains_stays_and_ends_what_runs() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        word = asyncio.Event()
        worker.script = lambda request: [*sse_head(), Await(word), *events("a", "b"), *sse_end()]
        running = asyncio.create_task(gateway.chat(stream=True))
        await until(lambda: len(worker.requests) == 1)
        name = f"/workers/127.0.0.1:{worker.port}"
        assert (await gateway.delete(name)).json["state"] == "draining"
        assert (await gateway.chat()).status == 503
        back = await gateway.post("/workers", {"url": worker.url})
        assert (back.status, back.json["state"], back.json["in_flight"]) == (200, "ready", 1)
        assert (await gateway.delete(name)).json["state"] == "draining"
        assert (await gateway.post("/workers", {"url": worker.url})).json["state"] == "ready"
        word.set()
        assert (await gateway.chat()).status == 200
        assert len((await running).events) == 4
        assert gateway.state_of(worker) is WorkerState.READY


async def test_one_that_went_away_while_it_drained_comes_back_cold() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body("long " * 200, stream=True)))
            await until(lambda: gateway.in_flight() == 1)
            await gateway.delete(f"/workers/127.0.0.1:{worker.port}")
            worker.admin["/health"] = lambda request: json_answer({}, 503)
            member = gateway.gateway.workers.find(worker.url)
            await until(lambda: not member.pulse.up)
            del worker.admin["/health"]
            checks = len(worker.admin_requests)
            await until(lambda: len(worker.admin_requests) > checks + 2)
            assert gateway.state_of(worker) is WorkerState.DRAINING
            back = await gateway.post("/workers", {"url": worker.url})
            assert (back.json["state"], back.json["blocks_mirrored"]) == ("down", 3)
            await until(lambda: gateway.state_of(worker) is WorkerState.READY)
            row = (await gateway.get("/workers")).json["workers"][0]
            assert row["blocks_mirrored"] == 0


@pytest.mark.parametrize(
    ("body", "param"),
    [
        pytest.param({}, "state", id="nothing"),
        pytest.param({"state": "down"}, "state", id="no-order"),
        pytest.param({"labels": {"a": 1}}, "labels", id="no-text"),
        pytest.param({"labels": {str(at): "" for at in range(65)}}, "labels", id="too-many"),
        pytest.param({"priority": 3}, "priority", id="unknown"),
    ],
)
async def test_a_wrong_order_names_its_field(body: object, param: str) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        reply = await gateway.put(f"/workers/127.0.0.1:{worker.port}", body)
        assert (reply.status, reply.json["error"]["param"]) == (400, param)
        assert (await gateway.put("/workers/127.0.0.1:1", {"state": "paused"})).status == 404


@pytest.mark.parametrize(
    ("more", "param"),
    [
        pytest.param({"worker_type": "prefill"}, "worker_type", id="another-role"),
        pytest.param({"api_key": "a b"}, "api_key", id="no-key"),
        pytest.param({"model": "toy"}, "model", id="unknown"),
    ],
)
async def test_a_worker_is_not_added_with_what_is_not_understood(
    more: dict[str, object], param: str
) -> None:
    async with ScriptedWorker() as worker, small_gateway([]) as gateway:
        reply = await gateway.post("/workers", {"url": worker.url, **more})
        assert (reply.status, reply.json["error"]["param"]) == (400, param)
        assert (await gateway.get("/workers")).json["total"] == 0
        kept = {"url": worker.url, "worker_type": "regular", "labels": {"a": "b"}}
        assert (await gateway.post("/workers", kept)).json["labels"] == {"a": "b"}


async def test_a_grpc_worker_takes_no_key() -> None:
    async with small_gateway([]) as gateway:
        reply = await gateway.post("/workers", {"url": "grpc://127.0.0.1:1", "api_key": "k"})
        assert (reply.status, reply.json["error"]["param"]) == (400, "api_key")


async def test_the_older_routes() -> None:
    async with ScriptedWorker() as worker, small_gateway([]) as gateway:
        assert (await gateway.post(f"/add_worker?url={worker.url}", b"")).status == 200
        await gateway.ready(1)
        assert (await gateway.get("/list_workers")).json == {"urls": [worker.url]}
        assert (await gateway.post(f"/remove_worker?url={worker.url}", b"")).status == 200
        assert (await gateway.get("/list_workers")).json == {"urls": []}
        assert (await gateway.post("/add_worker", b"")).status == 400


async def test_loads_show_what_runs_and_what_waits() -> None:
    rules = GatewayRules(limits=LimitsConfig(max_concurrent_requests=1))
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        worker.admin["/abort_request"] = lambda request: json_answer({})
        async with RawClient(gateway.port) as first, RawClient(gateway.port) as second:
            for client in (first, second):
                client.send(request(CHAT, chat_body(stream=True)))
                await until(lambda: len(worker.requests) == 1)
            await until(lambda: gateway.gateway.metrics.read_waiting() == 1)
            loads = (await gateway.get("/get_loads")).json
            assert loads == {"workers": [{"worker": worker.url, "load": 1}]}
            detail = (await gateway.get("/v1/loads?include=core")).json
            assert detail["loads"][0]["num_running_reqs"] == 1
            assert detail["loads"][0]["token_usage"] is None
            assert detail["aggregate"]["total_reqs"] == 2
            # What waits would otherwise begin once everything has been ended.
            await gateway.post("/abort_request", {"abort_all": True})
            dropped = await second.answer()
            assert dropped.status == 200
            assert b'"finish_reason":"abort"' in dropped.body
            assert gateway.gateway.metrics.read_waiting() == 0


async def test_an_abort_goes_to_the_owner_also_to_a_paused_one() -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other]) as gateway,
    ):
        for one in (worker, other):
            one.admin["/abort_request"] = lambda request: json_answer({})
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        asked = [
            asyncio.create_task(gateway.post("/generate", {"text": "hi", "rid": f"r-{number}"}))
            for number in (1, 2)
        ]
        await until(lambda: len(worker.requests) == len(other.requests) == 1)
        rid = worker.requests[0].json["rid"]
        await gateway.put(f"/workers/{worker.url}", {"state": "paused"})
        reply = await gateway.post("/abort_request", {"rid": rid})
        assert list(reply.json["workers"]) == [f"127.0.0.1:{worker.port}"]
        # Of what nobody knows everybody is told.
        reply = await gateway.post("/abort_request", {"rid": "r"})
        assert len(reply.json["workers"]) == 2
        for task in asked:
            task.cancel()


async def test_tokens_of_a_foreign_model_are_its_worker_s_to_tell() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.admin["/tokenize"] = lambda request: json_answer({"tokens": [1, 2], "count": 2})
        reply = await gateway.post("/tokenize", {"model": "toy", "prompt": "ab", "own": 1})
        assert (reply.status, reply.json) == (200, {"tokens": [1, 2], "count": 2})
        assert worker.admin_requests[-1].json == {"model": "toy", "prompt": "ab", "own": 1}
        assert (await gateway.post("/detokenize", {"tokens": [1]})).status == 404
        assert (await gateway.post("/tokenize", {"model": "no", "prompt": "a"})).status == 404


async def test_a_body_for_another_route_than_a_generation_s_may_be_compressed() -> None:
    async with ScriptedWorker() as worker, small_gateway() as gateway:
        body = gzip.compress(json.dumps({"url": worker.url}).encode())
        assert (await gateway.post("/workers", body, "Content-Encoding: gzip")).status == 200
        assert (await gateway.get("/workers")).json["total"] == 1
