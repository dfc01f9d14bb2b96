"""`POST /explain`: what would happen to a request, with nothing happening."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.policies.registry import POLICIES
from raw_client import Answer
from scripted_worker import ScriptedWorker
from small_gateway import SmallGateway, chat_body, small_gateway

LONG = "You are a patient assistant. " * 60


def body_of(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


async def explained(small: SmallGateway, body: object, query: str = "") -> dict[str, Any]:
    return body_of(await small.post(f"/explain{query}", body))


def chosen_by(answer: Answer) -> str:
    return answer.header("x-radixgate-worker") or ""


@pytest.mark.parametrize("policy", POLICIES)
async def test_the_explained_winner_is_the_one_that_is_asked(policy: str) -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        ScriptedWorker() as three,
        small_gateway([one, two, three], policy=policy) as small,
    ):
        for turn in range(8):
            text = f"{LONG} {turn % 3}"
            found = await explained(small, chat_body(text))
            again = await explained(small, chat_body(text))
            assert again["chosen"] == found["chosen"]
            assert found["policy"] == policy
            answer = await small.chat(text)
            assert chosen_by(answer) == found["chosen"]["worker"]


async def test_it_tells_what_each_holds_and_sends_nothing() -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two], policy="kv_cost") as small,
    ):
        warm = chosen_by(await small.chat(LONG))
        asked = len(one.requests) + len(two.requests)
        found = await explained(small, chat_body(LONG + "and now?"))
        assert len(one.requests) + len(two.requests) == asked
        assert small.in_flight() == 0
        first, second = found["candidates"]
        assert found["chosen"] == {"worker": warm, "reason": "hit"}
        assert first["worker"] == warm
        assert first["cached_tokens"] > 300
        # A worker of another make reports no KV: what it holds is what it was sent.
        assert (first["confirmed_tokens"], second["cached_tokens"]) == (0, 0)
        assert first["expected_tokens"] == first["cached_tokens"]
        assert first["score"] < second["score"]
        assert first["predicted_ttft_s"] < second["predicted_ttft_s"]
        assert first["load"]["requests_in_flight"] == 0
        assert first["load"]["running"] is None
        assert found["prompt_tokens"] > first["cached_tokens"]
        assert LONG[:20] not in json.dumps(found)
        assert found["left_out"] == []


@pytest.mark.parametrize(
    ("body", "query", "path"),
    [
        pytest.param(chat_body(), "", "/v1/chat/completions", id="messages"),
        pytest.param({"prompt": "hi"}, "", "/v1/completions", id="prompt"),
        pytest.param({"text": "hi"}, "", "/generate", id="text"),
        pytest.param({"input_ids": [1, 2]}, "", "/generate", id="input-ids"),
        pytest.param({"input": "hi"}, "?path=/v1/embeddings", "/v1/embeddings", id="named"),
    ],
)
async def test_the_endpoint_is_told_by_the_body_or_named(
    body: dict[str, Any], query: str, path: str
) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as small:
        assert (await explained(small, body, query))["path"] == path


@pytest.mark.parametrize(
    ("body", "query", "param"),
    [
        pytest.param({"input": "hi"}, "", "path", id="not-told"),
        pytest.param(chat_body(), "?path=/v1/models", "path", id="no-generation"),
        pytest.param({"messages": []}, "", "messages", id="what-sending-it-would-be-refused-for"),
        pytest.param(b"[", "", "body", id="no-json"),
    ],
)
async def test_what_is_wrong_is_refused_by_its_name(body: object, query: str, param: str) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as small:
        answer = await small.post(f"/explain{query}", body)
        assert answer.status == 400
        assert json.loads(answer.body)["error"]["param"] == param


async def test_a_worker_that_may_not_be_asked_is_left_out_with_the_reason() -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two]) as small,
    ):
        member = small.gateway.workers.find(one.url)
        await small.put(f"/workers/{member.address.id}", {"state": "paused"})
        found = await explained(small, chat_body())
        assert found["left_out"] == [{"worker": member.address.id, "reason": "paused"}]
        assert len(found["candidates"]) == 1
        small.gateway.choice.rest(found["chosen"]["worker"], 20.0)
        # There is nobody else, so it is asked all the same.
        assert (await explained(small, chat_body()))["chosen"] == found["chosen"]


async def test_it_is_an_admin_s_and_can_be_asked_for_a_tenant(tmp_path: Path) -> None:
    keys = tmp_path / "keys.yaml"
    digest = sha256(b"tenant-key").hexdigest()
    keys.write_text(f"keys: [{{sha256: {digest}, tenant: a}}]")
    rules = GatewayRules(access=AccessConfig(admin_api_key="boss", api_keys_file=str(keys)))
    boss, tenant = "authorization: Bearer boss", "authorization: Bearer tenant-key"
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two], rules=rules, policy="kv_cost") as small,
    ):
        path = "/v1/chat/completions"
        assert (await small.post(path, chat_body(LONG), tenant)).status == 200
        assert (await small.post("/explain", chat_body(LONG), tenant)).status == 403
        assert (await small.post("/explain", chat_body(LONG))).status == 401
        mine = body_of(await small.post("/explain", chat_body(LONG), boss))
        theirs = body_of(await small.post("/explain?tenant=a", chat_body(LONG), boss))
        assert [row["cached_tokens"] for row in mine["candidates"]] == [0, 0]
        assert theirs["candidates"][0]["cached_tokens"] > 300
        nobody = await small.post("/explain?tenant=nobody", chat_body(LONG), boss)
        assert nobody.status == 404
        error = nobody.json["error"]
        assert (error["message"], error["param"]) == ("there is no tenant 'nobody'", "tenant")


async def test_without_tenants_none_is_unknown() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as small:
        assert (await small.post("/explain?tenant=nobody", chat_body())).status == 200
