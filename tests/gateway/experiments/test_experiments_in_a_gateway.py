"""Experiments over real sockets: started, stopped, and what they record and do to requests."""

import asyncio
from pathlib import Path

import pytest

from gateway_experiments import (
    LONG,
    content_of,
    declared,
    over,
    recorded,
    rules,
    state,
)
from radixgate.analysis.experiments.records import (
    BlockEvent,
    Declaration,
    ExperimentEnd,
    RequestLine,
    Schedule,
    ShadowDecision,
)
from raw_client import RawClient, request
from scripted_worker import Await, Hang, ScriptedWorker, events, good_answer, sse_end, sse_head
from small_gateway import CHAT, chat_body, small_gateway
from until import PATIENCE_S, until


@pytest.mark.slow
async def test_a_switchback_runs_its_course_and_leaves_its_records(tmp_path: Path) -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two], rules=rules(tmp_path)) as gateway,
    ):
        row = await declared(gateway, block_s=2.0, hold_cap_s=1.7)
        assert row["state"] == "running"
        async with asyncio.timeout(PATIENCE_S):
            while (await state(gateway, "short"))["state"] == "running":
                assert (await gateway.chat(stream=True)).status == 200
        row = await over(gateway, "short")
        assert gateway.gateway.headquarters.path.detour.by is None
        shown = row["requests"]
    found = recorded(row)
    assert isinstance(found[0], Declaration)
    assert isinstance(found[1], Schedule)
    assert found[1].sha256 == row["schedule_sha256"]
    assert isinstance(found[-1], ExperimentEnd)
    assert found[-1].reason == "finished"
    steps = [one.moment for one in found if isinstance(one, BlockEvent)]
    assert steps == [
        *("reset", "began", "washed_out", "ended"),
        *("holding", "drained", "reset", "began", "washed_out", "ended"),
    ]
    lines = [one for one in found if isinstance(one, RequestLine)]
    assert {one.outcome for one in lines} == {"ok"}
    assert all(one.ttft_s is not None and one.unit is not None for one in lines)
    for arm in "AB":
        kept = [one for one in lines if one.arm == arm and not one.washout]
        assert shown[arm] == {"ok": len(kept)}
    blocks = {one.block: one.arm for one in lines if one.block >= 0}
    assert [blocks[0], blocks[1]] == row["schedule"]


async def test_an_answer_that_ends_after_the_stop_is_recorded_too(tmp_path: Path) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules(tmp_path)) as gateway,
    ):
        word = asyncio.Event()
        worker.script = lambda request: [*sse_head(), Await(word), *events("a"), *sse_end((5, 2))]
        await declared(gateway, **LONG)
        running = asyncio.create_task(gateway.chat(stream=True))
        await until(lambda: len(worker.requests) == 1)
        row = (await gateway.post("/experiments/short/stop", {})).json
        assert (row["state"], row["in_flight"]) == ("closing", 1)
        word.set()
        assert (await running).status == 200
        found = recorded(await over(gateway, "short"))
    (line,) = [one for one in found if isinstance(one, RequestLine)]
    assert (line.outcome, line.output_tokens) == ("ok", 2)
    assert isinstance(found[-1], ExperimentEnd)
    assert (found[-1].reason, found[-1].detail) == ("stopped", "by order")


@pytest.mark.slow
async def test_who_waits_in_a_hold_is_answered_at_once_when_it_is_stopped(tmp_path: Path) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules(tmp_path)) as gateway,
    ):
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        await declared(gateway, block_s=4.0, washout_s=0.0, hold_cap_s=3.9)
        hanging = asyncio.create_task(gateway.chat(stream=True))
        experiments = gateway.gateway.headquarters.experimenting.experiments
        acting = experiments.find("short").acting
        assert acting is not None
        await until(lambda: acting.plan.state()["phase"] == "holding")
        waiting = asyncio.create_task(gateway.chat())
        await until(lambda: acting.plan.state()["waiting"] == 1)
        worker.script = good_answer
        assert (await gateway.post("/experiments/short/stop", {})).status == 200
        assert (await waiting).status == 200
        hanging.cancel()


@pytest.mark.slow
async def test_who_waits_in_a_hold_can_be_aborted_by_order_or_leave_and_is_counted(
    tmp_path: Path,
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules(tmp_path)) as gateway,
    ):
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        await declared(gateway, block_s=4.0, washout_s=0.0, hold_cap_s=3.9)
        hanging = asyncio.create_task(gateway.chat(stream=True))
        experiments = gateway.gateway.headquarters.experimenting.experiments
        acting = experiments.find("short").acting
        assert acting is not None
        await until(lambda: acting.plan.state()["phase"] == "holding")
        waiting = asyncio.create_task(gateway.chat(rid="mine"))
        await until(lambda: acting.plan.state()["waiting"] == 1)
        await gateway.post("/abort_request", {"rid": "mine"})
        reply = await waiting
        assert reply.status == 200
        assert reply.json["choices"][0]["finish_reason"] == "abort"
        assert reply.json["id"].endswith(reply.header("x-request-id") or "none")
        assert len(worker.requests) == 1
        requests = "radixgate_requests_total"
        assert await gateway.counter(requests, outcome="ok") == 1
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body()))
            await until(lambda: acting.plan.state()["waiting"] == 1)
        await until(lambda: acting.plan.state()["waiting"] == 0)
        assert await gateway.counter(requests, outcome="client_disconnect") == 1
        await gateway.post("/experiments/short/stop", {})
        hanging.cancel()


async def test_shadows_decide_and_never_send(tmp_path: Path) -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two], rules=rules(tmp_path)) as gateway,
    ):
        shadow = {"kind": "shadow", "b": "random", "start": True}
        assert (await gateway.post("/experiments", {"name": "s", **shadow})).status == 200
        for number in range(8):
            assert (await gateway.chat(f"question {number}")).status == 200
        assert len(one.requests) + len(two.requests) == 8
        assert await gateway.counter("radixgate_shadow_decisions_total", experiment="s") == 8
        row = (await gateway.post("/experiments/s/stop", {})).json
        assert row["state"] == "over"
        assert row["now"]["decisions"] == 8
        assert gateway.gateway.headquarters.path.detour.by is None
        await gateway.chat()
    decisions = [line for line in recorded(row) if isinstance(line, ShadowDecision)]
    assert len(decisions) == 8
    assert all(line.chosen_b_actual is not None for line in decisions)
    assert b"question" not in content_of(row["file"])


@pytest.mark.slow
async def test_a_canarys_sessions_go_to_its_pool_and_say_by_which_policy(tmp_path: Path) -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two], rules=rules(tmp_path)) as gateway,
    ):
        pool = f"127.0.0.1:{two.port}"
        canary = {"kind": "canary", "b": "least_load", "share": 0.5, "workers": [pool]}
        row = await declared(gateway, **canary)
        assert row["not_an_effect_estimate"] is True
        assert row["now"]["workers_b"] == [pool]
        by_worker: dict[str, set[str]] = {}
        for number in range(20):
            reply = await gateway.chat(f"question {number}")
            worker, policy = reply.header("x-radixgate-worker"), reply.header("x-radixgate-policy")
            assert worker is not None
            assert policy is not None
            by_worker.setdefault(worker, set()).add(policy)
        assert by_worker == {f"127.0.0.1:{one.port}": {"round_robin"}, pool: {"least_load"}}
        # The pool is down: its sessions are answered by the others.
        await two.stop()
        for number in range(20):
            assert (await gateway.chat(f"question {number}")).status == 200
        await gateway.post("/experiments/short/stop", {})
        await two.start()


async def test_a_fault_ends_the_experiment_and_reaches_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules(tmp_path)) as gateway,
    ):
        await declared(gateway, **LONG)
        acting = gateway.gateway.headquarters.experimenting.experiments.find("short").acting
        assert acting is not None

        def fail() -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(acting.plan, "step", fail)
        assert (await gateway.chat()).status == 200
        row = await over(gateway, "short")
        assert row["reason"] == "failed"
        assert (await gateway.chat()).header("x-radixgate-policy") == "round_robin"
