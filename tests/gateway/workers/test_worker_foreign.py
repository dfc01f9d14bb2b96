"""How a foreign worker tells who it is."""

import asyncio
from dataclasses import replace

import pytest

from clocks import FakeClock
from radixgate.errors import InternalFault, WorkerFailed, WorkerUnreachable
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.upstream.connection import UpstreamConnection
from radixgate.gateway.upstream.pool import UpstreamPool
from radixgate.gateway.workers.worker_address import read_worker_url
from radixgate.gateway.workers.worker_foreign import ForeignWorker
from radixgate.gateway.workers.worker_handle import OrderResult
from radixgate.gateway.workers.worker_http import HttpWorkerClient
from scripted_worker import Hang, Reset, Script, ScriptedWorker, Sleep, answer, json_answer
from virtual_time import in_virtual_time

# What is asked of one that is known: whether it is well, and what it is called by now.
AGAIN = ["/health", "/v1/models"]


def foreign(worker: ScriptedWorker, timeout_s: float = 1.0) -> ForeignWorker:
    clock = FakeClock()
    address = read_worker_url(worker.url, frozenset(("http",)))
    pool = UpstreamPool(
        address.host,
        address.port,
        clock=clock,
        deadlines=Deadlines(clock),
        turn=LoopTurn(),
        max_idle=2,
        idle_timeout_s=10,
    )
    return ForeignWorker(address, HttpWorkerClient(pool, 1.0), pool, lambda: timeout_s)


def listing(models: list[dict[str, str]]) -> Script:
    return lambda request: json_answer({"data": models})


@in_virtual_time
async def test_an_openai_server_tells_its_model() -> None:
    async with ScriptedWorker(model="m/name") as worker:
        identity = await foreign(worker).probe()
        assert (identity.id, identity.url) == (f"127.0.0.1:{worker.port}", worker.url)
        assert (identity.model, identity.kind, identity.reports_kv) == ("m/name", "http", False)
        assert (identity.capacity_tokens, identity.instance_id) == (None, "")


@pytest.mark.parametrize("path", ["/get_server_info", "/server_info"])
@in_virtual_time
async def test_an_sglang_server_tells_its_capacity_too(path: str) -> None:
    async with ScriptedWorker() as worker:
        info = {"served_model_name": "served", "max_total_num_tokens": 4096, "instance_id": "i"}
        worker.admin["/v1/models"] = lambda request: json_answer({}, 404)
        worker.admin[path] = lambda request: json_answer(info)
        identity = await foreign(worker).probe()
        assert (identity.model, identity.capacity_tokens) == ("served", 4096)
        assert identity.instance_id == "i"


@in_virtual_time
async def test_it_is_asked_who_it_is_once_a_life() -> None:
    async with ScriptedWorker() as worker:
        handle = foreign(worker)
        await handle.probe()
        asked = len(worker.admin_requests)
        await handle.probe()
        assert [record.path for record in worker.admin_requests[asked:]] == AGAIN
        worker.admin["/health"] = lambda request: json_answer({}, 503)
        with pytest.raises(WorkerFailed, match="/health answers 503"):
            await handle.probe()
        del worker.admin["/health"]
        await handle.probe()
        assert len(worker.admin_requests) > asked + 3


@in_virtual_time
async def test_another_process_at_its_address_is_asked_anew_however_soon_it_was_there() -> None:
    async with ScriptedWorker(model="one") as worker:
        handle = foreign(worker)
        assert (await handle.probe()).model == "one"
        await worker.stop()
        worker.model = "two"
        await worker.start()
        assert (await handle.probe()).model == "two"
        asked = len(worker.admin_requests)
        await handle.probe()
        assert [record.path for record in worker.admin_requests[asked:]] == AGAIN


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(lambda request: [Hang()], id="silent"),
        pytest.param(lambda request: [Reset()], id="reset"),
        pytest.param(lambda request: answer(b"<html>"), id="no-json"),
        pytest.param(lambda request: json_answer({"data": []}), id="empty"),
    ],
)
@in_virtual_time
async def test_a_list_that_cannot_be_had_later_changes_nothing(script: Script) -> None:
    async with ScriptedWorker() as worker:
        handle = foreign(worker)
        known = await handle.probe()
        worker.admin["/v1/models"] = script
        assert await handle.probe() == known


@in_virtual_time
async def test_a_list_that_hangs_for_good_asks_no_more_of_a_worker_that_is_well() -> None:
    async with ScriptedWorker() as worker:
        handle = foreign(worker, timeout_s=0.1)
        known = await handle.probe()
        worker.admin["/v1/models"] = lambda request: [Hang()]
        for _ in range(3):
            asked = len(worker.admin_requests)
            assert await handle.probe() == known
            assert [record.path for record in worker.admin_requests[asked:]] == AGAIN


@in_virtual_time
async def test_the_list_has_only_the_time_that_health_has_left() -> None:
    async with ScriptedWorker() as worker:
        handle = foreign(worker, timeout_s=0.2)
        known = await handle.probe()
        worker.admin["/health"] = lambda request: [Sleep(0.12), *answer(b"")]
        worker.admin["/v1/models"] = lambda request: [Hang()]
        async with asyncio.timeout(0.2):
            assert await handle.probe() == known


@in_virtual_time
async def test_a_connection_given_up_for_a_list_excuses_one_new_one_and_no_more() -> None:
    async with ScriptedWorker(model="one") as worker:
        handle = foreign(worker, timeout_s=0.1)
        await handle.probe()
        worker.admin["/v1/models"] = lambda request: [Hang()]
        await handle.probe()
        del worker.admin["/v1/models"]
        await handle.probe()
        await worker.stop()
        await worker.start()
        asked = len(worker.admin_requests)
        await handle.probe()
        assert "/server_info" in [record.path for record in worker.admin_requests[asked:]]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(lambda request: [Hang()], id="silent"),
        pytest.param(lambda request: json_answer({}, 503), id="refused"),
    ],
)
@in_virtual_time
async def test_over_a_new_connection_the_names_stay_where_the_list_cannot_be_had(
    script: Script,
) -> None:
    async with ScriptedWorker() as worker:
        handle = foreign(worker, timeout_s=0.2)
        known = await handle.probe()
        await worker.stop()
        await worker.start()
        worker.admin["/v1/models"] = script
        worker.admin["/server_info"] = lambda request: json_answer({"instance_id": "another"})
        assert await handle.probe() == replace(known, instance_id="another")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(lambda request: [Hang()], id="silent"),
        pytest.param(lambda request: json_answer({}, 500), id="refused"),
        pytest.param(lambda request: [Reset()], id="broken-off"),
    ],
)
@in_virtual_time
async def test_over_a_new_connection_it_stays_who_it_was_until_it_says_so(script: Script) -> None:
    async with ScriptedWorker() as worker:
        handle = foreign(worker, timeout_s=0.2)
        known = await handle.probe()
        await worker.stop()
        await worker.start()
        worker.admin["/server_info"] = script
        assert await handle.probe() == known
        worker.admin["/server_info"] = lambda request: json_answer({"instance_id": "another"})
        assert await handle.probe() == replace(known, instance_id="another")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(lambda request: [Hang()], id="silent"),
        pytest.param(lambda request: json_answer({}, 500), id="refused"),
        pytest.param(lambda request: [Reset()], id="broken-off"),
    ],
)
@in_virtual_time
async def test_its_names_are_read_again_though_it_does_not_say_who_it_is(script: Script) -> None:
    async with ScriptedWorker() as worker:
        handle = foreign(worker, timeout_s=0.4)
        known = await handle.probe()
        await worker.stop()
        await worker.start()
        worker.admin["/server_info"] = script
        models = [{"id": "toy"}, {"id": "sql", "parent": "toy"}]
        for listed, adapters in ((models, ("sql",)), (models[:1], ())):
            worker.admin["/v1/models"] = listing(listed)
            assert await handle.probe() == replace(known, adapters=adapters)
        worker.admin["/v1/models"] = lambda request: json_answer({}, 404)
        assert await handle.probe() == known
        worker.admin["/server_info"] = lambda request: json_answer({"instance_id": "another"})
        worker.admin["/v1/models"] = listing(models)
        assert await handle.probe() == replace(known, instance_id="another", adapters=("sql",))


@in_virtual_time
async def test_a_server_without_health_is_judged_by_its_models() -> None:
    async with ScriptedWorker() as worker:
        worker.admin["/health"] = lambda request: json_answer({}, 404)
        assert (await foreign(worker).probe()).model == "toy"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param("/v1/models", 503, id="models-loading"),
        pytest.param("/v1/models", 404, id="nothing-tells"),
        pytest.param("/get_server_info", 503, id="info-loading"),
    ],
)
@in_virtual_time
async def test_a_worker_that_does_not_tell_its_model_is_not_known_yet(
    path: str, status: int
) -> None:
    async with ScriptedWorker() as worker:
        worker.admin[path] = lambda request: json_answer({}, status)
        with pytest.raises(WorkerFailed):
            await foreign(worker).probe()


@in_virtual_time
async def test_nobody_there_is_told_from_a_bad_answer() -> None:
    worker = await ScriptedWorker().start()
    handle = foreign(worker)
    await handle.probe()
    await worker.stop()
    with pytest.raises(WorkerUnreachable):
        await handle.probe()


@in_virtual_time
async def test_a_fault_of_ours_in_an_answer_s_reading_is_an_order_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ScriptedWorker() as worker:
        handle = foreign(worker)
        known = await handle.probe()

        def faulty(self: UpstreamConnection, data: bytes) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(UpstreamConnection, "received", faulty)
            said = "internal error; the log has the details"
            assert await handle.flush_cache() == OrderResult(False, said)
            assert await handle.info("/get_server_info") == OrderResult(False, said)
            with pytest.raises(InternalFault):
                await handle.probe()
        assert await handle.probe() == known
