"""What experiments may be declared over sockets, by whom, and when they begin."""

from pathlib import Path

import pytest

from gateway_experiments import SHORT, declared, files_in, over, rules, state
from radixgate.analysis.experiments.records import (
    ExperimentEnd,
    read_lines,
)
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.experiments_config import (
    ExperimentLogConfig,
    ExperimentRules,
    LiveExperimentConfig,
)
from radixgate.gateway.settings.rules import GatewayRules
from scripted_worker import ScriptedWorker
from small_gateway import small_gateway
from until import until


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
        names = ["short", "s0", "s1", "s2", "s3"]
        assert [row["name"] for row in listed["experiments"]] == names, "refused whole"


async def test_one_that_may_not_begin_leaves_what_stood_in_its_place(tmp_path: Path) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=rules(tmp_path)) as gateway,
    ):
        before = await declared(gateway)
        assert (await gateway.post("/experiments/short/stop", {})).status == 200
        await over(gateway, "short")
        await declared(gateway, name="other")
        refused = await gateway.post("/experiments", SHORT)
        assert refused.status == 409
        after = await state(gateway, "short")
        assert (after["state"], after["file"]) == ("over", before["file"])
        later = await declared(gateway, start=False)
        assert later["state"] == "declared", "what is not to begin may be declared meanwhile"


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
