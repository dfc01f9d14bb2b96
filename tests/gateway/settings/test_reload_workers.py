"""Settings read again: the workers that they name come, go and stay."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from read_again import quick, readable
from scripted_worker import Await, ScriptedWorker, events, sse_end, sse_head
from small_gateway import small_gateway
from until import until


async def test_the_workers_of_the_file_come_and_go_and_others_stay(tmp_path: Path) -> None:
    async with (
        ScriptedWorker() as by_flag,
        ScriptedWorker() as by_file,
        ScriptedWorker() as later,
        ScriptedWorker() as by_request,
        small_gateway([by_flag]) as gateway,
    ):
        file = tmp_path / "workers.yaml"
        first = GatewaySettings(quick(worker_urls=(by_flag.url,)))
        now = replace(first, config=replace(first.config, workers_file=str(file)))
        readable(gateway, first, lambda: now)
        await gateway.post("/workers", {"url": by_request.url})
        file.write_text(f"workers:\n  - url: {by_file.url}\n    labels: {{zone: b}}\n")
        assert (await gateway.post("/reload", b"")).status == 200
        await gateway.ready(3)
        row = (await gateway.get(f"/workers/{by_file.url[7:]}")).json
        assert row["labels"] == {"zone": "b"}
        file.write_text(f"workers:\n  - url: {later.url}\n")
        told = (await gateway.post("/reload", b"")).json
        assert told == {"changed": ["gateway.workers_file"], "needs_restart": []}
        assert (await gateway.post("/reload", b"")).json["changed"] == []
        await gateway.ready(3)
        urls = {row["url"] for row in (await gateway.get("/workers")).json["workers"]}
        assert urls == {by_flag.url, later.url, by_request.url}


async def test_a_worker_that_was_removed_is_taken_up_again_and_told() -> None:
    workers = (ScriptedWorker(), ScriptedWorker())
    async with workers[0] as gone, workers[1] as paused, small_gateway(workers) as gateway:
        first = GatewaySettings(quick(worker_urls=(gone.url, paused.url)))
        readable(gateway, first, lambda: first)
        await gateway.put(f"/workers/{paused.url[7:]}", {"state": "paused"})
        assert (await gateway.delete(f"/workers/{gone.url[7:]}")).json["state"] == "removed"
        told = (await gateway.post("/reload", b"")).json
        assert told == {"changed": ["workers"], "needs_restart": []}
        await gateway.ready(1)
        assert gateway.state_of(gone) is WorkerState.READY
        assert gateway.state_of(paused) is WorkerState.PAUSED
        assert (await gateway.post("/reload", b"")).json["changed"] == []


async def test_a_worker_that_drains_when_it_is_reloaded_stays_and_is_told() -> None:
    word = asyncio.Event()
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: [*sse_head(), Await(word), *events("a"), *sse_end()]
        first = GatewaySettings(quick(worker_urls=(worker.url,)))
        readable(gateway, first, lambda: first)
        asking = asyncio.create_task(gateway.chat(stream=True))
        await until(lambda: len(worker.requests) == 1)
        await gateway.delete(f"/workers/{worker.url[7:]}")
        assert gateway.state_of(worker) is WorkerState.DRAINING
        assert (await gateway.post("/reload", b"")).json["changed"] == ["workers"]
        assert gateway.state_of(worker) is WorkerState.READY
        word.set()
        assert (await asking).status == 200


async def test_what_a_file_says_no_more_of_a_worker_does_not_stay(tmp_path: Path) -> None:
    async with ScriptedWorker() as worker, small_gateway() as gateway:
        file = tmp_path / "workers.yaml"
        first = GatewaySettings(quick())
        now = replace(first, config=replace(first.config, workers_file=str(file)))
        readable(gateway, first, lambda: now)
        name = worker.url[7:]

        async def reloaded(more: str) -> tuple[int, object]:
            file.write_text(f"workers:\n  - {{url: '{worker.url}'{more}}}\n")
            status = (await gateway.post("/reload", b"")).status
            return status, (await gateway.get(f"/workers/{name}")).json["labels"]

        assert await reloaded(", api_key: k, labels: {zone: b}") == (200, {"zone": "b"})
        assert await reloaded(", api_key: k") == (200, {})
        assert await reloaded("") == (400, {}), "its key cannot be taken from it"
        await gateway.put(f"/workers/{name}", {"labels": {"by": "hand"}})
        assert await reloaded(", api_key: k") == (200, {"by": "hand"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("workers: [{url: nonsense}]", "is expected", id="no-url"),
        pytest.param("workers: [{url: 'http://a:1', colour: red}]", "colour", id="unknown-name"),
        pytest.param("workers: [{url: 'grpc://a:1', api_key: k}]", "takes no api_key", id="key"),
        pytest.param(
            "workers: [{url: 'http://a:1'}, {url: 'http://a:1', api_key: k}]",
            "given twice",
            id="twice",
        ),
        pytest.param("workers: [", "not YAML", id="not-yaml"),
    ],
)
async def test_a_wrong_file_of_workers_is_refused_whole(
    text: str, said: str, tmp_path: Path
) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        file = tmp_path / "workers.yaml"
        file.write_text(text)
        first = GatewaySettings(quick(worker_urls=(worker.url,)))
        now = replace(first, config=replace(first.config, workers_file=str(file), worker_urls=()))
        readable(gateway, first, lambda: now)
        answer = await gateway.post("/reload", b"")
        assert answer.status == 400
        assert said in answer.json["error"]["message"]
        assert len(gateway.gateway.workers.ready()) == 1
