"""A conversation that names the response before it goes to the worker that has stored that one."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from gateway_processes import processes
from radixgate.errors import UnknownResponse
from radixgate.gateway.asking.stored_responses import MAX_ID_CHARS, StoredResponse, StoredResponses
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import Answer, ask, request
from scripted_worker import (
    Raw,
    Recorded,
    ScriptedWorker,
    Step,
    chunk,
    json_answer,
    sse_head,
)
from small_gateway import SmallGateway, small_gateway

PATH = "/v1/responses"


class Storing:
    """Answers as an engine that stores responses; of those of others it knows nothing."""

    def __init__(self, worker: ScriptedWorker, name: str) -> None:
        self._name = name
        self._count = 0
        worker.script = self.respond

    def respond(self, asked: Recorded) -> list[Step]:
        before = asked.json.get("previous_response_id")
        if before is not None and not before.startswith(f"resp_{self._name}"):
            return json_answer({"error": {"message": "no such response"}}, 404)
        self._count += 1
        response = {"id": f"resp_{self._name}{self._count}", "object": "response", "usage": None}
        if not asked.json.get("stream"):
            return json_answer(response)
        event = {"type": "response.completed", "response": response}
        return [*sse_head(), chunk(f"data: {json.dumps(event)}\n\n".encode()), Raw(b"0\r\n\r\n")]


def id_of(answer: Answer) -> str:
    if not answer.body.startswith(b"data: "):
        return str(answer.json["id"])
    return str(json.loads(answer.body.removeprefix(b"data: "))["response"]["id"])


@asynccontextmanager
async def two_that_store() -> AsyncIterator[tuple[ScriptedWorker, ScriptedWorker, SmallGateway]]:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two]) as gateway,
    ):
        Storing(one, "a"), Storing(two, "b")
        yield one, two, gateway


# ------------------------------------------------------------ the book


def test_no_tenant_has_another_s_forgotten() -> None:
    stored = StoredResponses(max_kept=2)
    stored.keep("of red", "w", "red")
    for number in range(5):
        stored.keep(f"r{number}", "w", "blue")
    assert [one.id for one in stored.all()] == ["of red", "r3", "r4"]


def test_a_response_is_known_until_too_many_have_come_after_it() -> None:
    stored = StoredResponses(max_kept=2)
    for number in range(3):
        stored.keep(f"r{number}", f"w{number}", None)
    assert stored.worker_of("r0", None) is None
    assert stored.worker_of("r1", None) == "w1"
    stored.keep("r3", "w3", None)
    assert [one.id for one in stored.all()] == ["r1", "r3"]  # r1 has been asked for since


def test_to_another_tenant_it_is_not_there() -> None:
    stored = StoredResponses()
    stored.keep("r", "w", "red")
    assert stored.worker_of("r", "red") == "w"
    for other in ("blue", None):
        with pytest.raises(UnknownResponse, match="'r'"):
            stored.worker_of("r", other)


def test_no_tenant_takes_over_what_is_another_s() -> None:
    stored = StoredResponses()
    stored.keep("r", "w", "red")
    stored.keep("r", "elsewhere", "blue")
    assert stored.worker_of("r", "red") == "w"


def test_others_are_told_of_our_own_only() -> None:
    told: list[StoredResponse] = []
    stored = StoredResponses()
    stored.on_kept = told.append
    stored.keep("r", "w", None)
    stored.hear(StoredResponse("theirs", "w", None))
    stored.keep("x" * (MAX_ID_CHARS + 1), "w", None)  # no engine's
    stored.keep(None, "w", None)
    assert told == [StoredResponse("r", "w", None)]
    assert [one.id for one in stored.all()] == ["r", "theirs"]


# ------------------------------------------------------------ on the way


@pytest.mark.parametrize("stream", [False, True])
async def test_what_goes_on_goes_to_the_worker_that_has_it(stream: bool) -> None:
    async with two_that_store() as (_, _, gateway):
        first = [await say(gateway, stream=stream) for _ in range(2)]
        assert {id_of(answer) for answer in first} == {"resp_a1", "resp_b1"}
        for answer in first * 3:  # the rotation would send half of them elsewhere
            after = await say(gateway, previous_response_id=id_of(answer), stream=stream)
            assert (after.status, id_of(after)[:6]) == (200, id_of(answer)[:6])


async def test_what_is_not_stored_takes_no_place() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        Storing(worker, "a")
        await say(gateway, store=False)
        await say(gateway, store=True)
        kept = gateway.gateway.headquarters.path.stored.all()
    assert [one.id for one in kept] == ["resp_a2"]


async def test_without_its_worker_it_waits_for_it_and_a_removed_one_is_forgotten() -> None:
    async with two_that_store() as (one, two, gateway):
        first = await say(gateway)
        holder, other = (one, two) if id_of(first) == "resp_a1" else (two, one)
        await gateway.put(f"/workers/{holder.url[7:]}", {"state": "paused"})
        paused = await say(gateway, previous_response_id=id_of(first))
        assert (paused.status, paused.header("retry-after")) == (503, "1")
        assert other.requests == []
        await gateway.delete(f"/workers/{holder.url[7:]}")
        gone = await say(gateway, previous_response_id=id_of(first))
        assert (gone.status, gone.json) == (404, {"error": {"message": "no such response"}})


async def test_it_is_read_cancelled_and_deleted_at_its_worker() -> None:
    async with two_that_store() as (one, two, gateway):
        held = [id_of(await say(gateway)) for _ in range(2)]
        for worker, name in ((one, "resp_a1"), (two, "resp_b1")):
            for path in (name, f"{name}/cancel", f"{name}/input_items"):
                worker.admin[f"{PATH}/{path}"] = lambda asked: json_answer(
                    {"told": f"{asked.method} {asked.target}"}
                )
        for name in held:
            at = f"{PATH}/{name}"
            assert (await gateway.get(at)).json == {"told": f"GET {at}"}
            assert (await gateway.delete(at)).json == {"told": f"DELETE {at}"}
            assert (await gateway.post(f"{at}/cancel", b"")).json == {"told": f"POST {at}/cancel"}
            items = await gateway.get(f"{at}/input_items?limit=2")
            assert items.json == {"told": f"GET {at}/input_items?limit=2"}
        for worker in (one, two):
            asked = [one for one in worker.admin_requests if one.path.startswith(PATH)]
            assert len(asked) == 4  # only its own


async def test_of_one_that_is_not_known_here_every_worker_is_asked() -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two]) as gateway,
    ):
        two.admin[f"{PATH}/resp_old"] = lambda _: json_answer({"id": "resp_old"})
        assert (await gateway.get(f"{PATH}/resp_old")).json == {"id": "resp_old"}
        assert (await gateway.get(f"{PATH}/resp_never?stream=False")).status == 404
        head = await ask(gateway.port, request(f"{PATH}/resp_old", method="HEAD"))
        assert head.status == 405
        await one.stop()
        assert (await gateway.get(f"{PATH}/resp_old")).json == {"id": "resp_old"}
        # The worker that is away may be the one that has it.
        assert (await gateway.get(f"{PATH}/resp_never")).status == 502


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param("..%2fflush_cache", 404, id="another-path"),
        pytest.param("a%0d%0ax", 404, id="another-line"),
        pytest.param("resp_a?stream=true", 400, id="a-stream"),
        pytest.param("resp_a?stream=false&stream=true", 400, id="a-stream-behind-none"),
    ],
)
async def test_what_is_no_id_reaches_no_worker(path: str, status: int) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        assert (await gateway.get(f"{PATH}/{path}")).status == status
        assert all("responses" not in one.path for one in worker.admin_requests)


async def test_tenants_do_not_reach_each_other_s(tmp_path: Path) -> None:
    keys = tmp_path / "keys.yaml"
    names = ("red", "blue")
    lines = [f"  - {{sha256: {sha256(n.encode()).hexdigest()}, tenant: {n}}}" for n in names]
    keys.write_text("\n".join(["keys:", *lines]))
    rules = GatewayRules(access=AccessConfig(api_keys_file=str(keys)))
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        Storing(worker, "a")
        worker.admin[f"{PATH}/resp_a1"] = lambda _: json_answer({"output": "of red"})
        red, blue = (f"Authorization: Bearer {name}" for name in names)
        first = await gateway.post(PATH, {"input": "hi"}, red)
        assert id_of(first) == "resp_a1"
        on = {"input": "on", "previous_response_id": "resp_a1"}
        refused = await gateway.post(PATH, on, blue)
        assert (refused.status, refused.json["error"]["code"]) == (404, "response_not_found")
        assert (await gateway.get(f"{PATH}/resp_a1", blue)).status == 404
        assert (await gateway.get(f"{PATH}/resp_a1")).status == 401
        assert len(worker.requests) == 1
        assert (await gateway.post(PATH, on, red)).status == 200
        assert (await gateway.get(f"{PATH}/resp_a1", red)).json == {"output": "of red"}


@pytest.mark.slow
async def test_every_process_knows_what_another_has_answered() -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        processes("--worker-urls", one.url, two.url, "--policy", "round_robin") as served,
    ):
        Storing(one, "a"), Storing(two, "b")
        await served.ready(2)
        for _ in range(10):
            first = await served.post(PATH, {"input": "hi"})
            assert first.status == 200, first.body
            # A fresh connection each: either process may take it.
            for _ in range(4):
                on = {"input": "on", "previous_response_id": id_of(first)}
                after = await served.post(PATH, on)
                assert after.status == 200, after.body
                assert id_of(after)[:6] == id_of(first)[:6]


async def say(gateway: SmallGateway, **fields: object) -> Answer:
    body = {"model": "toy", "input": "hi", **fields}
    return await ask(gateway.port, request(PATH, body))
