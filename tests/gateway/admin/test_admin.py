"""What the gateway tells of itself and its workers, and the orders it passes on."""

import asyncio

import pytest

from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.workers.worker_foreign import ForeignWorker
from radixgate.gateway.workers.worker_handle import OrderResult
from raw_client import RawClient, ask, request
from scripted_worker import (
    Await,
    Hang,
    ScriptedWorker,
    Sleep,
    chat_answer,
    events,
    json_answer,
    sse_end,
    sse_head,
)
from small_gateway import CHAT, chat_body, small_gateway
from until import until

ALL = {"abort_all": True}


async def test_models_are_merged_over_the_fleet() -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        ScriptedWorker(model="other") as three,
        small_gateway([one, two, three]) as gateway,
    ):
        reply = await gateway.get("/v1/models")
        assert reply.json["object"] == "list"
        assert [model["id"] for model in reply.json["data"]] == ["other", "toy"]
        assert reply.header("connection") == "close"


async def test_one_model_by_its_name_slashes_and_all() -> None:
    async with ScriptedWorker(model="some/toy") as worker, small_gateway([worker]) as gateway:
        one = await gateway.get("/v1/models/some/toy")
        assert one.json == (await gateway.get("/v1/models")).json["data"][0]
        assert one.json["id"] == "some/toy"
        other = await gateway.get("/v1/models/toy")
    assert (other.status, other.json["error"]["code"]) == (404, "model_not_found")
    assert "some/toy" in other.json["error"]["message"]


async def test_probes_of_an_orchestrator() -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two]) as gateway,
    ):
        lives = await gateway.get("/liveness")
        assert (lives.json, lives.header("server")) == ({"status": "ok"}, None)
        silent = await gateway.get("/health_generate")
        assert (silent.status, silent.header("retry-after")) == (503, "1")
        two.admin["/health_generate"] = lambda request: json_answer({})
        spoke = await gateway.get("/health_generate")
        assert (spoke.status, spoke.json["worker"]) == (200, two.url[7:])


async def test_a_body_that_is_not_encoded_as_it_says_is_the_client_s_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with small_gateway() as gateway:
        refused = await gateway.post("/workers", b"{}", "Content-Encoding: gzip")
        assert (refused.status, refused.json["error"]["param"]) == (400, "body")
        assert "gzip" in refused.json["error"]["message"]
    assert not caplog.records


@pytest.mark.slow
async def test_an_order_whose_body_does_not_come_is_refused() -> None:
    async with small_gateway() as gateway, RawClient(gateway.port) as client:
        gateway.gateway.headquarters.admin.body_within_s = 0.02
        client.send(request("/workers", {"url": "http://127.0.0.1:9"})[:-1])
        late = await client.answer()
        assert (late.status, late.json["error"]["code"]) == (408, "timeout")
        assert await client.ended()
        assert (await gateway.get("/workers")).json["total"] == 0


async def test_an_admin_connection_is_closed_and_a_hot_one_is_kept() -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker]) as gateway,
        RawClient(gateway.port) as client,
    ):
        assert (await client.ask(request(CHAT, chat_body()))).status == 200
        assert (await client.ask(request(CHAT, chat_body()))).status == 200
        assert (await client.ask(request("/health", method="GET"))).status == 200
        assert await client.ended()


async def test_a_generation_behind_an_admin_request_is_not_answered_there() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        async with RawClient(gateway.port) as client:
            client.send(request("/health", method="GET") + request(CHAT, chat_body()))
            assert (await client.answer()).status == 200
            assert await client.ended()
        assert not worker.requests


async def test_server_info_and_model_info() -> None:
    info = {"model_path": "m", "max_total_num_tokens": 1000, "version": "x", "instance_id": "i"}
    # From the first on: one that says another instance_id than before is another process.
    async with (
        ScriptedWorker(admin={"/get_server_info": lambda request: json_answer(info)}) as worker,
        small_gateway([worker]) as gateway,
    ):
        reply = await gateway.get("/get_server_info")
        assert reply.json["model_path"] == "m"
        assert "instance_id" not in reply.json, "two gateways over one worker are two processes"
        assert reply.json["gateway"]["policy"] == "round_robin"
        assert reply.json["workers"] == {f"127.0.0.1:{worker.port}": info}
        assert (await gateway.get("/get_model_info")).json["model_path"] == "toy"
        worker.admin["/get_model_info"] = lambda request: json_answer({"model_path": "/m"})
        assert (await gateway.get("/get_model_info")).json == {"model_path": "/m"}


async def test_flush_goes_to_every_worker_and_one_refusal_shows() -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two]) as gateway,
    ):
        for worker in (one, two):
            worker.admin["/flush_cache"] = lambda request: json_answer({"ok": True})
        reply = await gateway.post("/flush_cache", b"")
        assert (reply.status, reply.json["success"]) == (200, True)
        assert len(reply.json["workers"]) == 2
        two.admin["/flush_cache"] = lambda request: json_answer({"message": "busy"}, 400)
        reply = await gateway.post("/flush_cache", b"")
        assert (reply.status, reply.json["success"]) == (409, False)
        assert [r.method for r in one.admin_requests if r.path == "/flush_cache"] == ["POST"] * 2


async def test_of_a_worker_without_reports_nothing_is_believed_after_a_flush() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        await gateway.chat("a long beginning " * 100)
        row = f"/workers/127.0.0.1:{worker.port}"
        assert (await gateway.get(row)).json["blocks_mirrored"] > 0
        assert (await gateway.post("/flush_cache", b"")).status == 409
        assert (await gateway.get(row)).json["blocks_mirrored"] > 0
        worker.admin["/flush_cache"] = lambda request: json_answer({"ok": True})
        assert (await gateway.post("/flush_cache", b"")).status == 200
        assert (await gateway.get(row)).json["blocks_mirrored"] == 0
        await gateway.chat("a long beginning " * 100)
        assert (await gateway.get(row)).json["blocks_mirrored"] > 0


@pytest.mark.parametrize(
    ("order", "sent"),
    [
        pytest.param({"rid": "r-1"}, {"rid": "r-1"}, id="one"),
        pytest.param({"abort_all": True}, {"rid": "", "abort_all": True}, id="all"),
    ],
)
async def test_abort_goes_to_every_worker(
    order: dict[str, object], sent: dict[str, object]
) -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two]) as gateway,
    ):
        one.admin["/abort_request"] = lambda request: json_answer({})
        reply = await gateway.post("/abort_request", order)
        assert (reply.status, reply.json["success"]) == (200, True)
        for worker in (one, two):
            (got,) = [r for r in worker.admin_requests if r.path == "/abort_request"]
            assert got.json == sent


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"rid":5}', b"{}", b'{"abort_all":"yes"}'], ids=str
)
async def test_a_wrong_order_is_refused(body: bytes) -> None:
    async with small_gateway() as gateway:
        assert (await gateway.post("/abort_request", body)).status == 400


async def test_a_worker_leaves_when_its_last_answer_has_ended() -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other]) as gateway,
    ):
        word = asyncio.Event()
        slow = [*sse_head(), *events("a", "b"), Await(word), *events("c"), *sse_end()]
        worker.script = lambda request: slow
        running = asyncio.create_task(gateway.chat_first_at(worker, stream=True))
        await until(lambda: gateway.in_flight() == 1 and len(worker.requests) == 1)
        reply = await gateway.delete(f"/workers/127.0.0.1:{worker.port}")
        assert (reply.status, reply.json["state"]) == (200, "draining")
        assert gateway.state_of(worker) is WorkerState.DRAINING
        word.set()
        assert len((await running).events) == 5
        await gateway.ready(1)
        await until(lambda: len(gateway.gateway.workers.members()) == 1)
        assert (await gateway.chat()).status == 200


async def test_one_worker_by_id_or_url() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        row = (await gateway.get(f"/workers/127.0.0.1:{worker.port}")).json
        assert {"id", "url", "state", "in_flight", "load", "blocks_mirrored"} <= row.keys()
        assert (await gateway.get(f"/workers/{worker.url}")).json == row
        assert (await gateway.delete(f"/workers/{worker.url}")).status == 200
        assert (await gateway.get(f"/workers/{worker.url}")).status == 404


async def test_metrics_add_up() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        await gateway.chat()
        told = [*sse_head(), *events("", "a", "b", gap_s=0.03), *sse_end((7, 3))]
        worker.script = lambda request: told
        await gateway.chat(stream=True)
        worker.script = lambda request: json_answer({"error": {}}, 400)
        await gateway.chat()
        await gateway.post(CHAT, b"{")
        worker.script = lambda request: [Hang()]
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body()))
            await until(lambda: gateway.in_flight() == 1)
        await until(lambda: gateway.in_flight() == 0)
        total = "radixgate_requests_total"
        assert await gateway.counter(total, outcome="ok") == 2
        assert await gateway.counter(total, outcome="client_error") == 2
        assert await gateway.counter(total, outcome="client_disconnect") == 1
        assert await gateway.counter("radixgate_attempts_total") == 4
        assert await gateway.counter("radixgate_prompt_tokens_total") == 5 + 7
        assert await gateway.counter("radixgate_completion_tokens_total") == 2 + 3
        assert await gateway.counter("radixgate_in_flight") == 0
        # The first event had no output: the token came with the second.
        assert await gateway.counter("radixgate_ttft_seconds_count") == 1
        assert await gateway.counter("radixgate_ttft_seconds_bucket", le="0.05") == 0
        worker_id = f"127.0.0.1:{worker.port}"
        state = {"worker": worker_id, "state": "ready"}
        assert await gateway.counter("radixgate_worker_state", **state) == 1
        await gateway.delete(f"/workers/{worker_id}")
        assert worker_id not in (await gateway.get("/metrics")).body.decode()


async def test_a_failed_worker_is_looked_at_before_the_next_interval() -> None:
    worker = await ScriptedWorker().start()
    async with small_gateway(
        [worker], health_check_interval_secs=60.0, retry_max_retries=0
    ) as gateway:
        await worker.stop()
        assert (await gateway.chat()).status == 502
        await until(lambda: gateway.state_of(worker) is WorkerState.DOWN)


async def test_health_answers_while_a_worker_is_slow() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [Sleep(0.1), *chat_answer()]
        running = asyncio.create_task(gateway.chat())
        reply = await ask(gateway.port, request("/health", method="HEAD"))
        assert (reply.status, reply.body) == (200, b"")
        assert (await running).status == 200


async def test_a_generation_s_path_with_escapes_is_refused_by_that() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        refused = await gateway.post("/v1/ch%61t/completions?a=%20", chat_body())
        assert refused.status == 400
        assert "write the path as it is, /v1/chat/completions" in refused.json["error"]["message"]
        assert worker.requests == []


async def test_one_worker_s_fault_is_its_own_row(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two]) as gateway,
    ):
        for worker in (one, two):
            worker.admin["/flush_cache"] = lambda request: json_answer({"ok": True})
            worker.admin["/abort_request"] = lambda request: json_answer({})

        async def faulty(self: ForeignWorker, *given: object) -> OrderResult:
            raise ZeroDivisionError

        handle = gateway.gateway.workers.find(two.url).handle
        for order in ("flush_cache", "abort_request", "info"):
            monkeypatch.setattr(handle, order, faulty.__get__(handle))
        for path, body, status in (("/flush_cache", b"", 409), ("/abort_request", ALL, 200)):
            reply = await gateway.post(path, body)
            rows = reply.json["workers"]
            assert (reply.status, rows[f"127.0.0.1:{one.port}"]["success"]) == (status, True)
            assert rows[f"127.0.0.1:{two.port}"] == {
                "success": False,
                "message": "internal error; the log has the details",
            }
        assert list((await gateway.get("/get_server_info")).json["workers"]) == []
