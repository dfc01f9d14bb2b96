"""Settings read again under running requests: all of them hold, or none."""

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from radixgate.errors import ConfigError
from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.change import change_of
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.policies.registry import PolicyConfigs
from radixgate.policies.sticky import StickyConfig
from raw_client import RawClient, request
from read_again import quick, readable
from scripted_worker import Await, ScriptedWorker, Sleep, events, json_answer, sse_end, sse_head
from small_gateway import CHAT, chat_body, small_gateway
from until import until

FIRST = GatewaySettings()


def test_what_can_change_does_and_the_rest_is_named() -> None:
    now = GatewaySettings(
        GatewayConfig(port=9, policy="sticky", retry_max_retries=1, processes=2),
        PolicyConfigs(sticky=StickyConfig(sticky_load_factor=3.0)),
        GatewayRules(
            AccessConfig(api_key="new", worker_api_key="theirs"),
            LimitsConfig(max_concurrent_requests=5),
        ),
    )
    change = change_of(FIRST, now)
    assert set(change.changed) == {
        "gateway.policy",
        "gateway.retry_max_retries",
        "sticky.sticky_load_factor",
        "access.api_key",
        "limits.max_concurrent_requests",
    }
    assert set(change.needs_restart) == {
        "gateway.port",
        "gateway.processes",
        "access.worker_api_key",
    }
    assert change.policy
    config, access = change.settings.config, change.settings.rules.access
    assert (config.port, config.processes, config.retry_max_retries) == (8000, 1, 1)
    assert (access.api_key, access.worker_api_key) == ("new", None)
    assert change_of(change.settings, change.settings).changed == ()


def test_a_policy_that_stays_keeps_what_it_remembers() -> None:
    now = replace(FIRST, rules=GatewayRules(limits=LimitsConfig(queue_size=1)))
    assert not change_of(FIRST, now).policy


async def test_another_policy_and_limit_hold_for_the_next_request() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        first = GatewaySettings(quick(worker_urls=(worker.url,)))
        now = replace(
            first,
            config=replace(first.config, policy="least_load"),
            rules=GatewayRules(limits=LimitsConfig(max_concurrent_requests=1, queue_size=0)),
        )
        readable(gateway, first, lambda: now)
        word = asyncio.Event()
        worker.script = lambda request: [*sse_head(), Await(word), *events(*"abcd"), *sse_end()]
        async with RawClient(gateway.port) as running:
            running.send(request(CHAT, chat_body(stream=True)))
            await until(lambda: len(worker.requests) == 1)
            answer = await gateway.post("/reload", b"")
            assert answer.json == {
                "changed": [
                    "gateway.policy",
                    "limits.max_concurrent_requests",
                    "limits.queue_size",
                ],
                "needs_restart": [],
            }
            word.set()
            assert len((await running.answer()).events) == 6
        assert gateway.in_flight() == 0
        word.clear()
        asking = [asyncio.create_task(gateway.chat(text, stream=True)) for text in "ab"]
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        word.set()
        first_of_two, second = await asyncio.gather(*asking)
        assert sorted((first_of_two.status, second.status)) == [200, 429]
        ended = first_of_two if first_of_two.status == 200 else second
        assert ended.header("x-radixgate-policy") == "least_load"


async def test_other_thresholds_of_checks_hold_for_workers_that_are_there() -> None:
    never: dict[str, Any] = {"health_failure_threshold": 1_000, "health_success_threshold": 1}
    async with ScriptedWorker() as worker, small_gateway([worker], **never) as gateway:
        first = GatewaySettings(quick(worker_urls=(worker.url,), **never))
        worker.admin["/health"] = lambda request: json_answer({}, 503)
        member = gateway.gateway.workers.find(worker.url)
        await until(lambda: bool(member.trouble))
        asked = len(worker.admin_requests)
        await until(lambda: len(worker.admin_requests) > asked + 4)
        assert gateway.state_of(worker) is WorkerState.READY
        soon = replace(first.config, health_failure_threshold=1, health_success_threshold=1_000)
        readable(gateway, first, lambda: replace(first, config=soon))
        assert (await gateway.post("/reload", b"")).status == 200
        await until(lambda: gateway.state_of(worker) is WorkerState.DOWN)
        del worker.admin["/health"]
        asked = len(worker.admin_requests)
        await until(lambda: len(worker.admin_requests) > asked + 4)
        assert gateway.state_of(worker) is WorkerState.DOWN, "it came back by the old threshold"


async def test_a_wrong_setting_changes_nothing_and_is_told() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        first = GatewaySettings(quick(worker_urls=(worker.url,)))
        now = replace(
            first,
            config=replace(first.config, policy="least_load", workers_file="/nowhere.yaml"),
        )
        readable(gateway, first, lambda: now)
        answer = await gateway.post("/reload", b"")
        assert answer.status == 400
        assert "nothing was changed" in answer.json["error"]["message"]
        assert "/nowhere.yaml" in answer.json["error"]["message"]
        assert (await gateway.chat()).header("x-radixgate-policy") == "round_robin"

        def unreadable() -> GatewaySettings:
            raise ConfigError("settings.yaml:3: no setting gateway.polcy")

        readable(gateway, first, unreadable)
        answer = await gateway.post("/reload", b"")
        assert (answer.status, "settings.yaml:3" in answer.body.decode()) == (400, True)
        await gateway.gateway.reloading.by_signal()
        assert (await gateway.chat()).status == 200


async def test_keys_change_for_clients_and_admins(tmp_path: Path) -> None:
    rules = GatewayRules(AccessConfig(api_key="old"))
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        first = GatewaySettings(quick(worker_urls=(worker.url,)), rules=rules)
        keys = tmp_path / "keys.yaml"
        digest = hashlib.sha256(b"new").hexdigest()
        keys.write_text(f"keys:\n  - {{sha256: {digest}, tenant: t, admin: true}}\n")
        access = AccessConfig(api_keys_file=str(keys))
        readable(gateway, first, lambda: replace(first, rules=GatewayRules(access)))
        old, new = "Authorization: Bearer old", "Authorization: Bearer new"
        assert (await gateway.post(CHAT, chat_body(), old)).status == 200
        assert (await gateway.post("/reload", b"", old)).status == 200
        assert (await gateway.post(CHAT, chat_body(), old)).status == 401
        assert (await gateway.post(CHAT, chat_body(), new)).status == 200
        assert (await gateway.get("/workers", old)).status == 401
        assert (await gateway.get("/workers", new)).status == 200
        keys.write_text(keys.read_text().replace("tenant: t", "tenant: u"))
        told = (await gateway.post("/reload", b"", new)).json
        assert told == {"changed": ["access.api_keys_file"], "needs_restart": []}
        assert (await gateway.post("/reload", b"", new)).json["changed"] == []


async def test_another_time_for_a_check_holds_for_workers_that_are_there() -> None:
    hasty: dict[str, Any] = {"health_check_timeout_secs": 0.1, "health_failure_threshold": 1}
    async with ScriptedWorker() as worker, small_gateway([worker], **hasty) as gateway:
        first = GatewaySettings(quick(worker_urls=(worker.url,), **hasty))
        worker.admin["/health"] = lambda request: [Sleep(0.2), *json_answer({})]
        worker.admin["/flush_cache"] = worker.admin["/health"]
        await until(lambda: gateway.state_of(worker) is WorkerState.DOWN)
        patient = replace(first.config, health_check_timeout_secs=5.0)
        readable(gateway, first, lambda: replace(first, config=patient))
        answer = await gateway.post("/reload", b"")
        assert answer.json == {
            "changed": ["gateway.health_check_timeout_secs"],
            "needs_restart": [],
        }
        await until(lambda: gateway.state_of(worker) is WorkerState.READY)
        flushed = await gateway.post("/flush_cache", b"")
        assert flushed.status == 200, "orders have that time, too"
