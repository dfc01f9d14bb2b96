"""Case G15: credentials and request ids at the boundary."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.observe.metrics import FinalOutcome
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.rules import GatewayRules
from scripted_worker import Recorded, ScriptedWorker, Step, good_answer, json_answer
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import until

G = "Authorization: Bearer G"
ADMIN = "Authorization: Bearer ADMIN"
KEYED = GatewayRules(AccessConfig(api_key="G"))
SPLIT = GatewayRules(AccessConfig(api_key="G", admin_api_key="ADMIN"))


def guarded(worker: ScriptedWorker, key: str) -> ScriptedWorker:
    """401 unless it is asked with `key`, on every path."""

    def refuse(request: Recorded) -> list[Step] | None:
        if request.header("authorization") == f"Bearer {key}":
            return None
        return json_answer({"error": {"message": "no"}}, 401)

    def models(request: Recorded) -> list[Step]:
        return refuse(request) or json_answer({"data": [{"id": worker.model}]})

    worker.script = lambda request: refuse(request) or good_answer(request)
    worker.admin["/v1/models"] = models
    for path in ("/health", "/get_server_info", "/get_model_info", "/flush_cache"):
        worker.admin[path] = lambda request: refuse(request) or json_answer({})
    return worker


def authorizations(worker: ScriptedWorker) -> set[str | None]:
    return {one.header("authorization") for one in worker.requests + worker.admin_requests}


@asynccontextmanager
async def two_workers(
    rules: GatewayRules,
) -> AsyncIterator[tuple[SmallGateway, ScriptedWorker, ScriptedWorker]]:
    """W1 with key K1, W2 with none."""
    async with (
        ScriptedWorker() as first,
        ScriptedWorker() as second,
        small_gateway([second], rules=rules) as gateway,
    ):
        guarded(first, "K1")
        body = {"url": first.url, "api_key": "K1"}
        assert (await gateway.post("/workers", body, G)).status == 200
        await gateway.ready(2)
        yield gateway, first, second


async def test_g15_a_worker_with_a_key_sees_only_it_and_the_other_none_of_the_gateway_s() -> None:
    async with two_workers(KEYED) as (gateway, first, second):
        for stream in (False, True):
            for _ in range(2):
                reply = await gateway.post(CHAT, chat_body(stream=stream), G)
                assert reply.status == 200
                assert (await gateway.post("/generate", {"text": "hi"}, G)).status == 200
        for path in ("/v1/models", "/get_server_info", "/get_model_info"):
            assert (await gateway.get(path, G)).status == 200
        await gateway.post("/flush_cache", b"", G)
        assert len(first.requests) == len(second.requests) == 4
        assert authorizations(first) == {"Bearer K1"}
        assert authorizations(second) == {None}
        assert gateway.state_of(first) is WorkerState.READY


@pytest.mark.parametrize(
    "header",
    [
        pytest.param((), id="none"),
        pytest.param(("Authorization: Bearer H",), id="wrong"),
        pytest.param(("Authorization: Basic G",), id="another-scheme"),
        pytest.param((G, G), id="two"),
        pytest.param(("Authorization: Bearer \xff",), id="no-ascii"),
    ],
)
async def test_g15_a_wrong_key_is_a_401_and_reaches_no_worker(header: tuple[str, ...]) -> None:
    async with two_workers(KEYED) as (gateway, first, second):
        for path in (CHAT, "/v1/completions", "/generate"):
            reply = await gateway.post(path, chat_body(), *header)
            assert (reply.status, reply.json["error"]["code"]) == (401, "invalid_api_key")
            assert reply.header("www-authenticate") == "Bearer"
            assert reply.header("x-request-id")
        for path in ("/v1/models", "/workers", "/metrics", "/get_server_info", "/nowhere"):
            assert (await gateway.get(path, *header)).status == 401
        assert first.requests + second.requests == []
        assert gateway.gateway.metrics.requests[FinalOutcome.CLIENT_ERROR] == 3
        assert gateway.gateway.metrics.in_flight == 0


async def test_g15_the_id_is_the_one_the_worker_saw_and_stays_over_a_retry() -> None:
    async with two_workers(KEYED) as (gateway, first, second):
        for header in ((), ("x-request-id: mine-1",)):
            before = len(first.requests)
            reply = await gateway.post(CHAT, chat_body(), G, *header)
            (seen,) = first.requests[before:] or second.requests[-1:]
            assert reply.header("x-request-id") == seen.header("x-request-id")
        second.script = lambda request: json_answer({}, 503)
        before = len(second.requests)
        while len(second.requests) == before:
            reply = await gateway.post(CHAT, chat_body(), G)
        ids = {one.requests[-1].header("x-request-id") for one in (first, second)}
        assert (reply.status, ids) == (200, {reply.header("x-request-id")})


async def test_probes_need_no_key() -> None:
    async with two_workers(KEYED) as (gateway, _, _):
        assert (await gateway.get("/health")).status == 200
        assert (await gateway.get("/readiness")).json["ready_workers"] == 2


async def test_the_admin_key_splits_off_the_admin_routes() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=SPLIT) as gateway:
        assert (await gateway.post(CHAT, chat_body(), G)).status == 200
        assert (await gateway.get("/v1/models", G)).status == 200
        for path in ("/workers", "/metrics", "/get_server_info"):
            refused = await gateway.get(path, G)
            assert (refused.status, refused.json["error"]["code"]) == (403, "not_admin")
            assert (await gateway.get(path, ADMIN)).status == 200
        assert (await gateway.post(CHAT, chat_body(), ADMIN)).status == 200


async def test_where_a_request_went_is_an_admin_s_to_know_once_there_are_keys() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=SPLIT) as gateway:
        name = "x-radixgate-worker"
        client, admin = [await gateway.post(CHAT, chat_body(), key) for key in (G, ADMIN)]
        assert (client.header(name), admin.header(name)) == (None, f"127.0.0.1:{worker.port}")
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        assert (await gateway.chat()).header(name) == f"127.0.0.1:{worker.port}"


async def test_with_an_admin_key_alone_generations_need_none() -> None:
    rules = GatewayRules(AccessConfig(admin_api_key="ADMIN"))
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        assert (await gateway.post(CHAT, chat_body(), "Authorization: Bearer theirs")).status == 200
        assert authorizations(worker) == {None}
        assert (await gateway.get("/workers")).status == 401
        assert (await gateway.get("/workers", ADMIN)).status == 200


async def test_without_gateway_keys_the_client_s_authorization_is_the_worker_s() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        await gateway.post(CHAT, chat_body(), "Authorization: Bearer theirs")
        assert worker.requests[-1].header("authorization") == "Bearer theirs"
        await gateway.chat()
        assert worker.requests[-1].header("authorization") is None


async def test_the_workers_key_of_the_flags_is_for_those_without_one() -> None:
    rules = GatewayRules(AccessConfig(worker_api_key="ALL"))
    async with (
        ScriptedWorker() as first,
        ScriptedWorker() as second,
        small_gateway([guarded(first, "ALL")], rules=rules) as gateway,
    ):
        guarded(second, "K2")
        await gateway.post("/workers", {"url": second.url, "api_key": "K2"})
        await gateway.ready(2)
        for _ in range(2):
            reply = await gateway.post(CHAT, chat_body(), "Authorization: Bearer theirs")
            assert reply.status == 200
        assert (authorizations(first), authorizations(second)) == ({"Bearer ALL"}, {"Bearer K2"})


async def test_a_key_that_the_worker_does_not_take_is_not_the_client_s_fault() -> None:
    async with ScriptedWorker() as worker, small_gateway([]) as gateway:
        guarded(worker, "right").admin.clear()
        await gateway.post("/workers", {"url": worker.url, "api_key": "wrong"})
        await gateway.ready(1)
        reply = await gateway.chat()
        assert (reply.status, reply.json["error"]["type"]) == (502, "upstream_error")


async def test_keys_are_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "radixgate")
    secrets = AccessConfig(api_key="G-SECRET", worker_api_key="W-SECRET")
    async with (
        ScriptedWorker() as worker,
        small_gateway([], rules=GatewayRules(secrets)) as gateway,
    ):
        key = "Authorization: Bearer G-SECRET"
        body = {"url": worker.url, "api_key": "K-SECRET"}
        shown = [await gateway.post("/workers", body, key)]
        await gateway.ready(1)
        shown.append(await gateway.post("/workers", {**body, "api_key": "OTHER-SECRET"}, key))
        assert (shown[1].status, shown[1].json["error"]["param"]) == (409, "api_key")
        shown += [await gateway.get(path, key) for path in ("/workers", "/metrics")]
        shown.append(await gateway.post(CHAT, chat_body(), key + "x"))
        worker.script = lambda request: json_answer({}, 401)
        shown.append(await gateway.post(CHAT, chat_body(), key))
        text = json.dumps([reply.body.decode() for reply in shown]) + caplog.text + repr(secrets)
        assert "SECRET" not in text


KEYS = """
keys:
  - {sha256: %s, tenant: red}
  - {sha256: %s, tenant: blue, models: [toy]}
  - {sha256: %s, tenant: none, models: [other]}
  - {sha256: %s, tenant: ops, admin: true}
"""


def keys_file(folder: Path) -> GatewayRules:
    path = folder / "keys.yaml"
    names = ("red", "blue", "none", "ops")
    path.write_text(KEYS % tuple(sha256(name.encode()).hexdigest() for name in names))
    return GatewayRules(AccessConfig(api_key="G", api_keys_file=str(path)))


def bearer(key: str) -> str:
    return f"Authorization: Bearer {key}"


async def test_a_key_of_the_file_opens_its_models_only(tmp_path: Path) -> None:
    rules = keys_file(tmp_path)
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        assert (await gateway.post(CHAT, chat_body(), bearer("blue"))).status == 200
        refused = await gateway.post(CHAT, chat_body(), bearer("none"))
        assert (refused.status, refused.json["error"]["code"]) == (404, "model_not_found")
        assert "toy;" not in refused.json["error"]["message"]
        assert (await gateway.get("/v1/models", bearer("none"))).json["data"] == []
        assert len((await gateway.get("/v1/models", bearer("red"))).json["data"]) == 1
        assert (await gateway.get("/workers", bearer("blue"))).status == 403
        assert (await gateway.get("/workers", bearer("ops"))).status == 200
        await until(lambda: len(worker.requests) == 1)


async def test_a_tenant_s_salt_is_the_gateway_s_and_the_rest_keeps_its_bytes(
    tmp_path: Path,
) -> None:
    rules = keys_file(tmp_path)
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:

        async def salt_of(key: str, more: str = "") -> tuple[str | None, str | None]:
            body = '{"messages":[{"role":"user","content":"a\\u0062"}],"x":0.10,"y":1e400%s}'
            reply = await gateway.post(CHAT, (body % more).encode(), bearer(key))
            assert reply.status == 200
            got = worker.requests[-1]
            assert b'"content":"a\\u0062"' in got.body
            assert b'"x":0.10,"y":1e400' in got.body
            assert got.body.count(b"cache_salt") <= 1
            values = json.loads(got.body)
            return values.get("cache_salt"), values.get("extra_key")

        red, blue = await salt_of("red"), await salt_of("blue")
        assert red[0] == red[1]
        assert red[0]
        assert red != blue
        assert await salt_of("red") == red
        assert await salt_of("red", ',"cache_salt":null') == red
        forged = await salt_of("blue", f',"cache_salt":"{red[0]}","cache\\u005fsalt":"{red[0]}"')
        assert forged not in (red, blue)
        assert await salt_of("blue", ',"extra_key":"own"') not in (red, blue, forged)
        assert await salt_of("G") == (None, None)
        assert await salt_of("G", f',"cache_salt":"{red[0]}"') not in (red, (red[0], None))


async def test_a_tenant_s_prompts_are_cold_to_another(tmp_path: Path) -> None:
    rules, long = keys_file(tmp_path), "the same words " * 200
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], policy="cache_aware", rules=rules) as gateway,
    ):
        metrics = gateway.gateway.metrics
        await gateway.post(CHAT, chat_body(long), bearer("red"))
        await gateway.post(CHAT, chat_body(long), bearer("blue"))
        assert metrics.predicted_cached_tokens == 0
        await gateway.post(CHAT, chat_body(long), bearer("red"))
        assert metrics.predicted_cached_tokens > 500
