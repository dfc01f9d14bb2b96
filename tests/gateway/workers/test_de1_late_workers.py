"""DE1: the gateway starts with whoever is there, and adopts the others when they can answer."""

from collections import Counter

import pytest

from free_ports import free_port
from radixgate.fleet.fleet import WorkerState
from scripted_worker import ScriptedWorker, json_answer
from small_gateway import SmallGateway, chat_body, small_gateway
from until import until
from virtual_time import LoopClock, in_virtual_time


async def states(gateway: SmallGateway) -> dict[str, tuple[str, object]]:
    rows = (await gateway.get("/workers")).json["workers"]
    return {row["url"]: (row["state"], row["model"]) for row in rows}


async def routed(gateway: SmallGateway, requests: int) -> Counter[str | None]:
    replies = [await gateway.chat(f"{at}") for at in range(requests)]
    assert {reply.status for reply in replies} == {200}
    return Counter(reply.header("x-radixgate-worker") for reply in replies)


async def test_de1_late_workers_join_by_themselves() -> None:
    loading = ScriptedWorker(port=0)
    absent = ScriptedWorker(port=free_port())
    loading.admin["/v1/models"] = lambda request: json_answer({"error": "loading"}, 503)
    async with ScriptedWorker() as good, loading, small_gateway([good]) as gateway:
        for worker in (absent, loading):
            gateway.gateway.workers.add(worker.url)
        late = [gateway.gateway.workers.find(worker.url) for worker in (absent, loading)]
        await until(lambda: all(member.trouble for member in late))
        assert await states(gateway) == {
            good.url: ("ready", "toy"),
            absent.url: ("joining", None),
            loading.url: ("joining", None),
        }
        assert await routed(gateway, 6) == {f"127.0.0.1:{good.port}": 6}
        del loading.admin["/v1/models"]
        async with absent:
            await gateway.ready(3)
            assert set((await routed(gateway, 6)).values()) == {2}
            assert set((await states(gateway)).values()) == {("ready", "toy")}


async def test_de1_a_model_is_unknown_only_once_every_worker_has_said_what_it_serves() -> None:
    absent = ScriptedWorker(model="other", port=free_port())
    async with ScriptedWorker() as good, small_gateway([good]) as gateway:
        assert (await gateway.chat(model="other")).status == 404
        gateway.gateway.workers.add(absent.url)
        for path, body in (
            ("/v1/chat/completions", chat_body(model="other")),
            ("/tokenize", {"model": "other", "prompt": "a"}),
            ("/explain", chat_body(model="other")),
        ):
            refused = await gateway.post(path, body)
            assert (refused.status, refused.header("retry-after")) == (503, "1"), path
        assert (await gateway.chat()).status == 200
        async with absent:
            await gateway.ready(2)
            assert (await gateway.chat(model="other")).status == 200
            assert (await gateway.chat(model="third")).status == 404


async def test_a_worker_that_does_not_come_up_is_told_once_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("WARNING", "radixgate.gateway.workers.workers")
    absent = ScriptedWorker(port=free_port())
    async with small_gateway(health_failure_threshold=1) as gateway:
        member = gateway.gateway.workers.add(absent.url)
        # Checked again and again, and each time in vain.
        for _ in range(3):
            member.trouble = ""
            await until(lambda: bool(member.trouble))
        (told,) = caplog.records
        assert told.getMessage() == "worker not up yet"
        assert told.__dict__["fields"] == {"worker": member.address.id, "why": member.trouble}
        async with absent:
            await gateway.ready(1)
        await until(lambda: gateway.state_of(absent) is WorkerState.DOWN)
        said = [record.getMessage() for record in caplog.records]
        assert said == ["worker not up yet", "worker down"]


@pytest.mark.slow
@in_virtual_time
async def test_de1_a_worker_that_never_comes_holds_no_model_open() -> None:
    clock = LoopClock()
    absent = ScriptedWorker(model="other", port=free_port())
    loading = ScriptedWorker(model="third")
    loading.admin["/v1/models"] = lambda request: json_answer({"error": "loading"}, 503)
    async with (
        ScriptedWorker() as good,
        loading,
        small_gateway([good], clock=clock, worker_startup_timeout_secs=0.3) as gateway,
    ):
        began = clock.now()
        for worker in (absent, loading):
            gateway.gateway.workers.add(worker.url)
        late = [gateway.gateway.workers.find(worker.url) for worker in (absent, loading)]
        # Three checks have failed, and it may still be loading.
        await until(lambda: all(member.pulse.lost for member in late))
        assert (await gateway.chat(model="fourth")).status == 503
        await until(lambda: all(member.absent for member in late))
        assert clock.now() - began >= 0.3
        assert (await gateway.chat(model="fourth")).status == 404
        assert [member.state for member in late] == [WorkerState.JOINING] * 2
        async with absent:
            await gateway.ready(2)
            assert (await gateway.chat(model="other")).status == 200


async def test_de1_an_empty_gateway_serves_once_a_worker_is_added() -> None:
    async with ScriptedWorker() as worker, small_gateway() as gateway:
        assert (await gateway.chat()).status == 503
        assert (await gateway.get("/health")).status == 200
        assert (await gateway.get("/readiness")).status == 503
        reply = await gateway.post("/workers", {"url": worker.url})
        assert (reply.status, reply.json["state"]) == (200, "joining")
        await gateway.ready(1)
        assert (await gateway.chat()).status == 200
        assert (await gateway.get("/readiness")).status == 200


async def test_de1_two_spellings_of_an_address_are_one_worker() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        for url in (worker.url, worker.url + "/", worker.url.replace("http", "HTTP")):
            assert (await gateway.post("/workers", {"url": url})).status == 200
        assert len((await gateway.get("/workers")).json["workers"]) == 1


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("", id="empty"),
        pytest.param("127.0.0.1:80", id="no-scheme"),
        pytest.param("ftp://127.0.0.1:80", id="another-scheme"),
        pytest.param("http://127.0.0.1", id="no-port"),
        pytest.param("http://127.0.0.1:99999", id="port-too-large"),
        pytest.param("http://127.0.0.1:0", id="port-0"),
        pytest.param("http://127.0.0.1:80/path", id="a-path"),
        pytest.param("http://u:p@127.0.0.1:80", id="a-password"),
        pytest.param(5, id="a-number"),
    ],
)
async def test_a_url_that_is_none_is_refused(url: object) -> None:
    async with small_gateway() as gateway:
        reply = await gateway.post("/workers", {"url": url})
        assert (reply.status, reply.json["error"]["param"]) == (400, "url")
        assert (await gateway.get("/workers")).json["workers"] == []


async def test_a_worker_that_dies_is_listed_down_and_comes_back_cold() -> None:
    prompt = "a prompt of some length, so that it makes blocks " * 20
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], policy="cache_aware") as gateway,
    ):
        assert (await gateway.chat(prompt)).status == 200
        (row,) = (await gateway.get("/workers")).json["workers"]
        assert row["blocks_mirrored"] > 0
        await worker.stop()
        await until(lambda: gateway.state_of(worker) is WorkerState.DOWN)
        reply = await gateway.chat(prompt)
        assert (reply.status, reply.header("retry-after")) == (503, "1")
        assert (await gateway.chat("x", model="gpt")).status == 404
        await worker.start()
        await gateway.ready(1)
        (row,) = (await gateway.get("/workers")).json["workers"]
        assert row["blocks_mirrored"] == 0
        assert (await gateway.chat(prompt)).status == 200


async def test_m01_an_address_that_comes_back_is_taken_for_cold() -> None:
    prompt = "p" * 1200
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two], policy="cache_aware") as gateway,
    ):
        first = (await gateway.chat(prompt)).header("x-radixgate-worker")
        (warm,) = [worker for worker in (one, two) if first == f"127.0.0.1:{worker.port}"]
        removal = await gateway.delete(f"/workers/{first}")
        assert (removal.status, removal.json["state"]) == (200, "removed")
        other = (await gateway.chat(prompt)).header("x-radixgate-worker")
        assert other != first
        await gateway.post("/workers", {"url": warm.url})
        await gateway.ready(2)
        for _ in range(6):
            assert (await gateway.chat(prompt)).header("x-radixgate-worker") == other
        assert (await gateway.delete("/workers/nobody:1")).status == 404
