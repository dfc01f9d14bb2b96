"""A key for an adapter of a model, in one word: it opens that, and neither of the two alone."""

from hashlib import sha256
from pathlib import Path

from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.rules import GatewayRules
from scripted_worker import ScriptedWorker, json_answer
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway

KEY = "Authorization: Bearer k"
NAMES = [
    {"id": "base", "root": "/models/base", "parent": None},
    {"id": "sql", "root": "/adapters/sql", "parent": "base"},
    {"id": "poem", "root": "/adapters/poem", "parent": "base"},
]


def key_for(tmp_path: Path, models: str) -> GatewayRules:
    keys = tmp_path / "keys.yaml"
    digest = sha256(b"k").hexdigest()
    keys.write_text(f"keys:\n  - {{sha256: {digest}, tenant: t, models: {models}}}\n")
    return GatewayRules(access=AccessConfig(api_keys_file=str(keys)))


def worker_of_adapters() -> ScriptedWorker:
    worker = ScriptedWorker()
    worker.admin["/v1/models"] = lambda request: json_answer({"data": NAMES})
    worker.admin["/tokenize"] = lambda request: json_answer({"tokens": [1]})
    return worker


async def status(gateway: SmallGateway, path: str = CHAT, **fields: object) -> int:
    return (await gateway.post(path, {**chat_body(), **fields}, KEY)).status


async def test_a_pair_opens_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    rules = key_for(tmp_path, "['base:sql']")
    async with (
        worker_of_adapters() as worker,
        small_gateway([worker], rules=rules) as gateway,
    ):
        assert await status(gateway, model="base:sql") == 200
        assert worker.requests[-1].json["model"] == "base:sql"
        for fields in (
            {"model": "base"},
            {"model": "sql"},
            {"model": "base:poem"},
            {"model": "base", "lora_path": "sql"},
            {"model": "base:sql", "lora_path": "poem"},
            {"model": "poem:sql"},
        ):
            assert await status(gateway, **fields) == 404, fields
        assert len(worker.requests) == 1


async def test_a_client_finds_its_pair_in_the_list_and_learns_of_no_other_name(
    tmp_path: Path,
) -> None:
    rules = key_for(tmp_path, "['base:sql', 'base:gone']")
    async with (
        worker_of_adapters() as worker,
        small_gateway([worker], rules=rules) as gateway,
    ):
        listed = (await gateway.get("/v1/models", KEY)).json["data"]
        assert [(one["id"], one["parent"]) for one in listed] == [("base:sql", None)]
        assert (await gateway.get("/v1/models/base:sql", KEY)).status == 200
        refused = await gateway.post(CHAT, chat_body(model="base"), KEY)
        assert refused.json["error"]["message"].endswith("there are: base:sql")


async def test_the_adapter_of_a_pair_tokenizes_where_it_is_loaded(tmp_path: Path) -> None:
    rules = key_for(tmp_path, "['base:sql']")
    async with (
        worker_of_adapters() as worker,
        small_gateway([worker], rules=rules) as gateway,
    ):
        assert await status(gateway, "/tokenize", model="base:sql", prompt="hi") == 200
        assert await status(gateway, "/tokenize", model="base", prompt="hi") == 404
