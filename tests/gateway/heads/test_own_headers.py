"""Every response names its request and the policy, whoever answers it."""

from collections.abc import Awaitable, Callable

import pytest

from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import Answer, ask
from scripted_worker import ScriptedWorker
from small_gateway import SmallGateway, small_gateway

Asked = Callable[[SmallGateway], Awaitable[Answer]]

ASKED: dict[str, tuple[int, Asked]] = {
    "good": (200, lambda gateway: gateway.chat()),
    "admin": (200, lambda gateway: gateway.get("/workers")),
    "no-such-path": (404, lambda gateway: gateway.get("/nowhere")),
    "bad-field": (400, lambda gateway: gateway.chat(max_tokens=0)),
    "unknown-model": (404, lambda gateway: gateway.chat(model="nope")),
    "not-http": (400, lambda gateway: ask(gateway.port, b"nonsense\r\n\r\n")),
    "too-large": (413, lambda gateway: gateway.post("/generate", b" " * 70_000_000)),
}


@pytest.mark.parametrize("case", ASKED)
async def test_request_id_and_policy_stand_on_every_response(case: str) -> None:
    status, asked = ASKED[case]
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        answer = await asked(gateway)
        assert answer.status == status
        assert answer.header("x-request-id")
        assert answer.header("x-radixgate-policy") == "round_robin"


async def test_a_given_id_comes_back_from_the_admin_routes_too() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        answer = await gateway.get("/workers", "X-Request-Id: mine-7")
        assert answer.header("x-request-id") == "mine-7"


async def test_a_refused_key_has_them_as_well() -> None:
    rules = GatewayRules(access=AccessConfig(api_key="right"))
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        answer = await gateway.chat()
        assert answer.status == 401
        assert answer.header("x-request-id")
        assert answer.header("x-radixgate-policy") == "round_robin"
