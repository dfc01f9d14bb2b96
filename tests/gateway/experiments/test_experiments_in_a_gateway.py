"""Experiments over real sockets: declared, started, stopped and read by an admin."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from radixgate.analysis.experiments.records import (
    BlockEvent,
    Declaration,
    ExperimentEnd,
    Record,
    RequestLine,
    Schedule,
    ShadowDecision,
    read_lines,
)
from radixgate.gateway.access_config import AccessConfig
from radixgate.gateway.experiments.config import (
    ExperimentLogConfig,
    ExperimentRules,
    LiveExperimentConfig,
)
from radixgate.gateway.rules import GatewayRules
from raw_client import RawClient, request
from scripted_worker import Hang, ScriptedWorker, events, good_answer, sse_end, sse_head
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import until

SHORT = {
    "name": "short",
    "kind": "switchback",
    "b": "random",
    "block_s": 0.5,
    "pairs": 1,
    "washout_s": 0.2,
    "hold_cap_s": 0.2,
    "seed": 3,
    "start": True,
}
LONG = {"block_s": 100.0, "hold_cap_s": 10.0, "washout_s": 0.0}


def rules(folder: Path, **more: Any) -> GatewayRules:  # noqa: ANN401
    log = ExperimentLogConfig(experiment_folder=str(folder))
    return GatewayRules(experiments=ExperimentRules(log), **more)


async def declared(gateway: SmallGateway, **of: object) -> dict[str, Any]:
    reply = await gateway.post("/experiments", {**SHORT, **of})
    assert reply.status == 200, reply.body
    row: dict[str, Any] = reply.json
    return row


async def state(gateway: SmallGateway, name: str) -> dict[str, Any]:
    row: dict[str, Any] = (await gateway.get(f"/experiments/{name}")).json
    return row


async def over(gateway: SmallGateway, name: str) -> dict[str, Any]:
    async with asyncio.timeout(10):
        while (row := await state(gateway, name))["state"] != "over":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return row


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def content_of(file: str) -> bytes:
    return Path(file).read_bytes()


def recorded(row: dict[str, Any]) -> list[Record]:
    return list(read_lines(Path(row["file"]).read_bytes().splitlines(keepends=True)))


@pytest.mark.slow
async def test_a_switchback_runs_its_course_and_leaves_its_records(tmp_path: Path) -> None:
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        small_gateway([one, two], rules=rules(tmp_path)) as gateway,
    ):
        row = await declared(gateway)
        assert row["state"] == "running"
        async with asyncio.timeout(10):
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
        worker.script = lambda request: [*sse_head(), *events("a", gap_s=0.1), *sse_end((5, 2))]
        await declared(gateway, **LONG)
        running = asyncio.create_task(gateway.chat(stream=True))
        await until(lambda: len(worker.requests) == 1)
        row = (await gateway.post("/experiments/short/stop", {})).json
        assert (row["state"], row["in_flight"]) == ("closing", 1)
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
        await declared(gateway, block_s=1.0, washout_s=0.0, hold_cap_s=0.9)
        hanging = asyncio.create_task(gateway.chat(stream=True))
        experiments = gateway.gateway.headquarters.experimenting.experiments
        acting = experiments.find("short").acting
        assert acting is not None
        await until(lambda: acting.plan.state()["phase"] == "holding", 5.0)
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
        await declared(gateway, block_s=2.0, washout_s=0.0, hold_cap_s=1.9)
        hanging = asyncio.create_task(gateway.chat(stream=True))
        experiments = gateway.gateway.headquarters.experimenting.experiments
        acting = experiments.find("short").acting
        assert acting is not None
        await until(lambda: acting.plan.state()["phase"] == "holding", 5.0)
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


async def test_one_acts_at_a_time_and_a_few_shadows(tmp_path: Path) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules(tmp_path)) as gateway,
    ):
        await declared(gateway)
        reply = await gateway.post("/experiments", {**SHORT, "name": "other"})
        assert reply.status == 409
        assert "short acts, and one at a time may" in reply.json["error"]["message"]
        reply = await gateway.post("/experiments", SHORT)
        assert (reply.status, reply.json["error"]["message"]) == (
            409,
            "experiment short is running: stop it first",
        )
        for number in range(5):
            shadow = {"name": f"s{number}", "kind": "shadow", "b": "random", "start": True}
            reply = await gateway.post("/experiments", shadow)
            assert reply.status == (200 if number < 4 else 409)
        listed = (await gateway.get("/experiments")).json
        assert listed["total"] == 7
        assert {row["name"]: row["state"] for row in listed["experiments"]}["s4"] == "declared"


@pytest.mark.parametrize(
    ("of", "message"),
    [
        pytest.param({"kind": "ab"}, "kind: expected one of", id="kind"),
        pytest.param({"b": "randm"}, "no policy is called 'randm'", id="policy"),
        pytest.param(
            {"b_settings": ["x=1"]}, "random has no setting 'x'; it has none", id="setting"
        ),
        pytest.param(
            {"b": "sticky", "b_settings": ["sticky_load_factr=2"]},
            "nearest is sticky_load_factor",
            id="misspelt",
        ),
        pytest.param({"name": "../x"}, "a name has at most 64 letters", id="name"),
        pytest.param({"washout_s": 9}, "leave nothing to measure", id="washout"),
        pytest.param({"guardrails": ["ttft=2"]}, "there are error_share", id="guardrail"),
        pytest.param({"guardrails": ["ttft_p95"]}, "write it as metric=limit", id="no-limit"),
        pytest.param({"metrics": ["hit_rat"]}, "nearest is hit_rate", id="metric"),
        pytest.param({"washout": 1}, "washout is no setting; nearest is washout_s", id="unknown"),
        pytest.param({"kind": "canary"}, "a canary needs a worker for each arm", id="one-worker"),
        pytest.param({"kind": "bucket", "share": 1}, "nothing would be left to A", id="all"),
        pytest.param({"share": 2}, "a part of the sessions is over 0 to 1", id="share"),
    ],
)
async def test_what_cannot_be_is_refused_at_once(
    tmp_path: Path, of: dict[str, object], message: str
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules(tmp_path)) as gateway,
    ):
        reply = await gateway.post("/experiments", {**SHORT, **of})
        assert reply.status == 400
        assert message in reply.json["error"]["message"]
        assert files_in(tmp_path) == []


async def test_experiments_are_an_admins(tmp_path: Path) -> None:
    access = AccessConfig(api_key="client", admin_api_key="admin")
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules(tmp_path, access=access)) as gateway,
    ):
        assert (await gateway.get("/experiments")).status == 401
        client, admin = "authorization: Bearer client", "authorization: Bearer admin"
        assert (await gateway.post("/experiments", SHORT, client)).status == 403
        assert (await gateway.post("/experiments", SHORT, admin)).status == 200
        assert (await gateway.post("/experiments/short/stop", {}, client)).status == 403


async def test_there_may_be_none_of_a_name(tmp_path: Path) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules(tmp_path)) as gateway,
    ):
        for path in ("/experiments/x/start", "/experiments/x/stop"):
            assert (await gateway.post(path, {})).status == 404
        assert (await gateway.get("/experiments/x")).status == 404


async def test_declared_ones_begin_with_the_gateway_but_not_after_a_cut(tmp_path: Path) -> None:
    config = LiveExperimentConfig(kind="bucket", b="random", start=True)
    log = ExperimentLogConfig(experiment_folder=str(tmp_path))
    all_rules = GatewayRules(experiments=ExperimentRules(log, {"split": config}))
    async with ScriptedWorker() as worker:
        async with small_gateway([worker], rules=all_rules) as gateway:
            experiments = gateway.gateway.headquarters.experimenting.experiments
            await until(lambda: experiments.find("split").runs)
            await gateway.chat()
        (file,) = files_in(tmp_path)
        *_, last = read_lines(file.read_bytes().splitlines(keepends=True))
        assert isinstance(last, ExperimentEnd)
        assert (last.reason, last.detail) == ("stopped", "the gateway stops")
        # As if the gateway had been killed: there is no last line.
        file.write_bytes(b"\n".join(file.read_bytes().splitlines()[:-1]) + b"\n")
        async with small_gateway([worker], rules=all_rules) as gateway:
            experiments = gateway.gateway.headquarters.experimenting.experiments
            await until(lambda: experiments.find("split").trouble != "")
            (row,) = (await gateway.get("/experiments")).json["experiments"]
            assert row["state"] == "declared"
            assert "has no end: the gateway was cut off" in row["trouble"]
            assert (await gateway.chat()).header("x-radixgate-policy") == "round_robin"
            assert (await gateway.post("/experiments/split/start", {})).json["state"] == "running"


async def test_a_declared_one_waits_for_workers_of_a_file_too(tmp_path: Path) -> None:
    config = LiveExperimentConfig(kind="bucket", b="random", start=True)
    log = ExperimentLogConfig(experiment_folder=str(tmp_path))
    all_rules = GatewayRules(experiments=ExperimentRules(log, {"split": config}))
    named = tmp_path / "workers.yaml"
    named.write_text("workers: [{url: 'http://127.0.0.1:1'}]")
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=all_rules, workers_file=str(named)) as gateway,
    ):
        experiments = gateway.gateway.headquarters.experimenting.experiments
        looked = experiments.deadline
        await until(lambda: experiments.deadline > looked)
        assert (await state(gateway, "split"))["state"] == "declared"
        gateway.gateway.workers.remove("127.0.0.1:1")
        await until(lambda: experiments.find("split").runs)
