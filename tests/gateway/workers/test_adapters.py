"""What a worker serves under further names: aliases share a cache, adapters have one each."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from radixgate.errors import RequestError, UnknownModel
from radixgate.gateway.asking.asked_model import asked_model
from radixgate.gateway.attempt.caller import Caller
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.workers.listed_models import ListedModels, read_models
from scripted_worker import ScriptedWorker, json_answer
from small_gateway import SmallGateway, chat_body, small_gateway
from until import until

BASE = {"id": "base", "object": "model", "root": "/models/base", "parent": None}
ALIAS = {"id": "gpt", "object": "model", "root": "/models/base", "parent": None}
SQL = {"id": "sql", "object": "model", "root": "/loras/sql", "parent": "base"}
POEM = {"id": "poem", "object": "model", "root": "/loras/poem", "parent": "base"}
LONG = "a beginning that is worth a few blocks of bytes, and comes again " * 40


def lists(worker: ScriptedWorker, *rows: dict[str, Any]) -> ScriptedWorker:
    worker.admin["/v1/models"] = lambda request: json_answer({"object": "list", "data": [*rows]})
    return worker


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        pytest.param([BASE], ("base", (), ()), id="a-model"),
        pytest.param([BASE, ALIAS, SQL], ("base", ("gpt",), ("sql",)), id="vllm"),
        pytest.param([{"id": "a"}, {"id": "b"}], ("a", (), ("b",)), id="says-no-more"),
        pytest.param([BASE, BASE, SQL, SQL], ("base", (), ("sql",)), id="twice"),
        pytest.param(["x", {"id": 5}, {"id": ""}, BASE], ("base", (), ()), id="nonsense"),
        pytest.param([{**SQL, "root": "/models/base"}, BASE], ("sql", ("base",), ()), id="order"),
        pytest.param(
            [{"id": "a", "root": None}, {"id": "b", "root": None}], ("a", (), ("b",)), id="null"
        ),
    ],
)
def test_a_list_tells_the_model_its_aliases_and_adapters(
    rows: Sequence[object], found: tuple[str, tuple[str, ...], tuple[str, ...]]
) -> None:
    assert read_models({"object": "list", "data": rows}) == ListedModels(*found)


@pytest.mark.parametrize("answer", [None, [], {}, {"data": []}, {"data": {}}, {"data": [5]}])
def test_a_list_without_names_is_none(answer: object) -> None:
    assert read_models(answer) is None


class Compared(str):
    """A name that counts how often it is compared with another one."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return super().__eq__(other)


def test_a_long_list_is_read_without_comparing_each_name_with_each() -> None:
    rows = [
        {"id": Compared(f"n{number}"), "root": "/base" if number < 512 else "/lora"}
        for number in range(1_024)
    ]
    listed = read_models({"data": rows})
    assert listed is not None
    assert (len(listed.aliases), len(listed.adapters)) == (511, 512)
    assert Compared.times < 5_000


async def test_every_listed_name_is_served_and_shown() -> None:
    async with lists(ScriptedWorker(), BASE, ALIAS, SQL) as worker, small_gateway([worker]) as gw:
        for name in ("base", "gpt", "sql", "base:sql"):
            assert (await gw.chat(model=name)).status == 200
            assert worker.requests[-1].json["model"] == name
        assert (await gw.chat(model="poem")).status == 404
        assert (await gw.chat(model="base:poem")).status == 404
        shown = (await gw.get("/v1/models")).json["data"]
        assert [(one["id"], one["root"], one["parent"]) for one in shown] == [
            ("base", "base", None),
            ("gpt", "base", None),
            ("sql", "sql", "base"),
        ]
        assert (await gw.get("/v1/models/sql")).json["parent"] == "base"
        nameless = {"messages": chat_body()["messages"]}
        assert (await gw.post("/v1/chat/completions", nameless)).status == 200


async def test_a_request_for_an_adapter_goes_where_it_is_loaded() -> None:
    async with (
        lists(ScriptedWorker(), BASE, SQL) as one,
        lists(ScriptedWorker(), BASE, POEM) as two,
        small_gateway([one, two]) as gateway,
    ):
        for _ in range(4):
            assert (await gateway.chat(model="sql")).header("x-radixgate-worker") == one.url[7:]
            assert (await gateway.chat(model="poem")).header("x-radixgate-worker") == two.url[7:]
        went = {(await gateway.chat(model="base")).header("x-radixgate-worker") for _ in range(4)}
        assert went == {one.url[7:], two.url[7:]}
        assert gateway.in_flight() == 0


async def went(gateway: SmallGateway, **fields: object) -> set[str | None]:
    replies = [await gateway.chat("hi", **fields) for _ in range(4)]
    assert {reply.status for reply in replies} == {200}
    return {reply.header("x-radixgate-worker") for reply in replies}


async def test_one_name_of_two_bases_adapters_is_each_base_s_own() -> None:
    async with (
        lists(ScriptedWorker(), BASE, ALIAS, SQL) as one,
        lists(ScriptedWorker(), {"id": "qwen"}, {**SQL, "parent": "qwen"}) as two,
        small_gateway([one, two]) as gateway,
    ):
        first, second = one.url[7:], two.url[7:]
        assert await went(gateway, model="base:sql") == {first}
        assert await went(gateway, model="gpt:sql") == {first}
        assert await went(gateway, model="qwen:sql") == {second}
        assert await went(gateway, model="sql") == {first, second}
        assert (await gateway.chat(model="sql:sql")).status == 404
        gateway.gateway.workers.pause(gateway.gateway.workers.find(one.url), paused=True)
        assert (await gateway.chat(model="base:sql")).status == 503
        assert (await gateway.chat(model="qwen:sql")).status == 200


async def test_an_adapter_beside_the_model_goes_where_it_is_loaded() -> None:
    async with (
        lists(ScriptedWorker(), BASE, SQL) as one,
        lists(ScriptedWorker(), BASE, POEM) as two,
        small_gateway([one, two]) as gateway,
    ):
        first, second = one.url[7:], two.url[7:]
        for path, workers in (
            ("sql", {first}),
            ("poem", {second}),
            ([None, "poem"], {second}),
            (["sql", "poem"], {first}),
            (["nobody's", "poem"], {second}),
            ("nobody's", {first, second}),
            (None, {first, second}),
        ):
            assert await went(gateway, model="base", lora_path=path) == workers, path
        assert await went(gateway, model="base:sql", lora_path="poem") == {first}
        assert one.requests[-1].json["lora_path"] == "poem"
        explained = (await gateway.post("/explain", chat_body(model="base:poem"))).json
        assert [row["worker"] for row in explained["candidates"]] == [second]
        assert explained["left_out"] == [
            {"worker": first, "reason": "it does not list the adapter"}
        ]


async def test_another_try_goes_where_the_adapter_is_too() -> None:
    async with (
        lists(ScriptedWorker(), BASE, SQL) as one,
        lists(ScriptedWorker(), BASE) as two,
        small_gateway([one, two]) as gateway,
    ):
        statuses = iter((503, 200))
        one.script = lambda request: json_answer({}, next(statuses))
        assert (await gateway.chat(model="base:sql")).status == 200
        assert (len(one.requests), len(two.requests)) == (2, 0)


async def test_a_prompt_for_an_adapter_is_tokenized_where_it_is_loaded() -> None:
    async with (
        lists(ScriptedWorker(), BASE) as one,
        lists(ScriptedWorker(), BASE, SQL) as two,
        small_gateway([one, two]) as gateway,
    ):
        two.admin["/tokenize"] = lambda request: json_answer({"tokens": [1, 2]})
        for name in ("sql", "base:sql"):
            reply = await gateway.post("/tokenize", {"model": name, "prompt": "hi"})
            assert reply.json == {"tokens": [1, 2]}


async def predicted(gateway: SmallGateway, **fields: object) -> int:
    before = gateway.gateway.metrics.predicted_cached_tokens
    assert (await gateway.chat(LONG, **fields)).status == 200
    return gateway.gateway.metrics.predicted_cached_tokens - before


async def test_what_one_adapter_has_cached_is_no_other_s() -> None:
    async with (
        lists(ScriptedWorker(), BASE, ALIAS, SQL, POEM) as worker,
        small_gateway([worker], policy="cache_aware") as gateway,
    ):
        for name, known in (("base", False), ("gpt", True), ("sql", False), ("poem", False)):
            assert (await predicted(gateway, model=name) > 0) is known, name
            assert await predicted(gateway, model=name) > 0
        # However it is named.
        assert await predicted(gateway, model="base:sql") > 0
        assert await predicted(gateway, model="base", lora_path="sql") > 0
        # SGLang's field beside the model, of what the worker does not list.
        assert await predicted(gateway, model="base", lora_path="poem2") == 0
        assert await predicted(gateway, model="base", lora_path="poem2") > 0
        assert await predicted(gateway, model="base", lora_path=["poem3", None]) == 0


async def test_an_adapter_that_is_loaded_later_is_served_and_nothing_is_forgotten() -> None:
    async with (
        lists(ScriptedWorker(), BASE) as worker,
        small_gateway([worker], policy="cache_aware") as gateway,
    ):
        assert await predicted(gateway, model="base") == 0
        assert (await gateway.chat(model="sql")).status == 404
        lists(worker, BASE, SQL)
        await until(lambda: "sql" in gateway.gateway.fleet.models())
        assert (await gateway.chat(model="sql")).status == 200
        assert await predicted(gateway, model="base") > 0
        lists(worker, BASE)
        await until(lambda: "sql" not in gateway.gateway.fleet.models())
        assert (await gateway.chat(model="sql")).status == 404
        worker.admin["/v1/models"] = lambda request: json_answer({}, 500)
        asked = len(worker.admin_requests)
        await until(lambda: len(worker.admin_requests) > asked + 4)
        assert await predicted(gateway, model="base") > 0


class Served:
    names = frozenset(("base", "gpt", "sql", "other"))
    models = frozenset(("base", "other"))

    def having(self, model: str, adapters: Collection[str]) -> Collection[str]:
        return ["w"] if model in ("base", "gpt") and {*adapters} == {"sql"} else []


@pytest.mark.parametrize(
    ("name", "models", "meant"),
    [
        pytest.param("sql", {"sql"}, ("sql", None), id="an-adapter-of-its-own"),
        pytest.param("base:sql", {"base", "sql"}, ("base", "sql"), id="beside-its-model"),
        pytest.param("gpt:sql", None, ("gpt", "sql"), id="beside-an-alias"),
        pytest.param("other:sql", None, UnknownModel, id="beside-another-model"),
        pytest.param("base:sql", {"sql"}, UnknownModel, id="only-the-adapter-is-open"),
        pytest.param("guess:sql", {"sql"}, UnknownModel, id="no-model-is-told-from-a-closed-one"),
        pytest.param("base", {"sql"}, UnknownModel, id="its-model-is-not-open"),
        pytest.param("base:sql", {"base"}, UnknownModel, id="only-its-model-is-open"),
        pytest.param("base:sql", {"base:sql"}, ("base", "sql"), id="both-in-one-word"),
        pytest.param("base", {"base:sql"}, UnknownModel, id="of-a-pair-not-the-model"),
        pytest.param("sql", {"base:sql"}, UnknownModel, id="of-a-pair-not-the-adapter"),
        pytest.param("gpt:sql", {"base:sql"}, UnknownModel, id="a-pair-under-another-name"),
        pytest.param("other:sql", {"other:sql"}, UnknownModel, id="a-pair-that-nobody-lists"),
        pytest.param(None, {"base:sql"}, RequestError, id="nameless-is-never-a-pair"),
        pytest.param("base:other", None, UnknownModel, id="another-model-is-no-adapter"),
        pytest.param(None, {"base", "sql"}, ("base", None), id="nameless-is-the-model"),
        pytest.param(None, {"sql"}, RequestError, id="nameless-is-never-the-adapter"),
        pytest.param(None, None, RequestError, id="nameless-of-two-models"),
    ],
)
def test_which_name_is_meant(
    name: str | None,
    models: set[str] | None,
    meant: tuple[str, str | None] | type[Exception],
) -> None:
    caller = Caller(models=None if models is None else frozenset(models))
    if isinstance(meant, tuple):
        assert asked_model(name, caller, Served(), int) == meant
        return
    with pytest.raises(meant):
        asked_model(name, caller, Served(), int)


async def test_a_key_opens_no_adapter_that_it_does_not_name(tmp_path: Path) -> None:
    # printf %s k | sha256sum
    digest = "8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a"
    keys = tmp_path / "keys.yaml"
    keys.write_text(f"keys:\n  - {{sha256: {digest}, tenant: t, models: [base, sql]}}\n")
    rules = GatewayRules(access=AccessConfig(api_keys_file=str(keys)))
    async with (
        lists(ScriptedWorker(), BASE, SQL, POEM) as worker,
        small_gateway([worker], rules=rules) as gateway,
    ):
        for fields, status in (
            ({"model": "sql"}, 200),
            ({"model": "poem"}, 404),
            ({"model": "base:sql"}, 200),
            ({"model": "base:poem"}, 404),
            ({"model": "base", "lora_path": "sql"}, 200),
            ({"model": "base", "lora_path": "poem"}, 404),
            ({"model": "base", "lora_path": [None, "poem"]}, 404),
        ):
            body = chat_body(**fields)
            reply = await gateway.post("/v1/chat/completions", body, "Authorization: Bearer k")
            assert reply.status == status, fields
