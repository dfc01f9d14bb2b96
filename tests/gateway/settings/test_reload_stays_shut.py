"""A reload opens no gateway to strangers: a file is empty for a moment while it is written."""

from dataclasses import replace

import pytest

from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from radixgate.gateway.settings.rules import GatewayRules
from scripted_worker import ScriptedWorker
from small_gateway import CHAT, QUICK, chat_body, small_gateway

NOBODY = AccessConfig()
CLIENTS = AccessConfig(api_key="k")
ADMINS = AccessConfig(admin_api_key="a")
BOTH = AccessConfig(api_key="k", admin_api_key="a")


def quick(worker: ScriptedWorker) -> GatewayConfig:
    return GatewayConfig(worker_urls=(worker.url,), **QUICK)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(CLIENTS, NOBODY, id="clients-need-one"),
        pytest.param(ADMINS, NOBODY, id="admins-need-one"),
        pytest.param(BOTH, ADMINS, id="clients-need-one-and-admins-would"),
    ],
)
async def test_keys_that_were_needed_are_needed(before: AccessConfig, after: AccessConfig) -> None:
    key = f"Authorization: Bearer {before.admin_api_key or before.api_key}"
    rules = GatewayRules(access=before)
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        first = GatewaySettings(quick(worker), rules=rules)
        now = replace(first, rules=GatewayRules(access=after))
        gateway.gateway.reloading.read_by(first, lambda: now)
        reply = await gateway.post("/reload", b"", key)
        assert reply.status == 400
        assert reply.json["error"]["message"] == (
            "nothing was changed: no key would be needed any more where one is now;"
            " start the gateway anew to open it"
        )
        assert (await gateway.get("/workers")).status == 401
        stranger = (await gateway.post(CHAT, chat_body())).status
        assert stranger == (200 if before is ADMINS else 401)


async def test_a_key_may_change_and_a_first_one_come() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        settings = GatewaySettings(quick(worker))
        key = "x-none: 1"
        for access in (ADMINS, BOTH, CLIENTS, AccessConfig(api_key="other")):
            now = replace(settings, rules=GatewayRules(access=access))
            gateway.gateway.reloading.read_by(settings, lambda now=now: now)  # type: ignore[misc]
            assert (await gateway.post("/reload", b"", key)).status == 200
            settings = now
            key = f"Authorization: Bearer {access.admin_api_key or access.api_key}"
        assert (await gateway.post(CHAT, chat_body(), key)).status == 200
