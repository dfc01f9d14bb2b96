"""Text to token ids and back, with the tokenizer that our own workers brought."""

import random
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from clocks import FakeClock
from radixgate.fleet.fleet import Fleet, MirrorKey, WorkerIdentity
from radixgate.gateway.admin.access import key_check
from radixgate.gateway.admin.tokens import TokenRoutes
from radixgate.gateway.asking.prompt_tokens import PromptTokenizer, ServedModel
from radixgate.gateway.choice.breakers import Breakers
from radixgate.gateway.choice.spared import Spared
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.entry.key_ring import KeyRing
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.workers.health import HealthRule
from radixgate.gateway.workers.workers import Workers
from radixgate.policies.registry import make_policy
from radixgate.proto.http_errors import errors_as_json
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.weights.toy import toy_tokenizer_bundle

Client = TestClient[web.Request, web.Application]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    clock, rng = FakeClock(), random.Random(1)
    fleet = Fleet(make_policy("round_robin", clock, rng), clock, rng)
    fleet.admit(
        WorkerIdentity(
            id="w",
            url="grpc://w",
            kind="grpc",
            model="toy",
            mirror=MirrorKey("toy", "tokens", 16),
            capacity_tokens=1_000,
            weights_id="t",
            instance_id="i",
            reports_kv=True,
        )
    )
    prompts = PromptTokenizer()
    prompts.learn(ServedModel("toy", "t", "h", 259, 64, PromptEncoder(toy_tokenizer_bundle())))
    choice = WorkerChoice(fleet, Breakers(ReliabilityConfig(), clock), Spared(0.0, clock, rng))
    workers = Workers(fleet, {}, HealthRule.of(GatewayConfig()), 1.0, choice)
    checks = [errors_as_json, key_check(lambda: KeyRing.of(AccessConfig()))]
    app = web.Application(middlewares=checks)
    app.add_routes(TokenRoutes(workers, fleet, prompts).routes())
    async with TestClient(TestServer(app)) as asking:
        yield asking


async def test_a_text_and_back(client: Client) -> None:
    reply = await client.post("/tokenize", json={"model": "toy", "prompt": "ab"})
    assert await reply.json() == {"tokens": [97, 98], "count": 2, "max_model_len": 64}
    reply = await client.post("/detokenize", json={"tokens": [97, 98]})
    assert await reply.json() == {"text": "ab", "prompt": "ab"}


async def test_several_texts_and_a_chat(client: Client) -> None:
    reply = await client.post("/v1/tokenize", json={"prompt": ["a", "bc"]})
    body = await reply.json()
    assert (body["tokens"], body["count"]) == ([[97], [98, 99]], [1, 2])
    messages = [{"role": "user", "content": "a"}]
    body = await (await client.post("/tokenize", json={"messages": messages})).json()
    assert body["count"] == len(body["tokens"]) > 1


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        pytest.param("/tokenize", {"model": "x", "prompt": "a"}, 404, "model", id="model"),
        pytest.param("/tokenize", {}, 400, "prompt", id="no-prompt"),
        pytest.param("/tokenize", {"prompt": "a" * 99}, 400, "prompt", id="too-long"),
        pytest.param("/detokenize", {"tokens": [259]}, 400, "tokens", id="beyond"),
        pytest.param("/detokenize", {"tokens": ["a"]}, 400, "tokens", id="no-ids"),
    ],
)
async def test_what_is_wrong_is_named(
    client: Client, path: str, body: object, status: int, param: str
) -> None:
    reply = await client.post(path, json=body)
    error = (await reply.json())["error"]
    assert (reply.status, error["param"].partition("[")[0]) == (status, param)
