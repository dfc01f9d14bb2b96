"""A bench that keeps its run: one process or several, one rate or many."""

import asyncio
import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from radixgate.clock import SystemClock
from radixgate.errors import ConfigError, ProcessFailed
from radixgate.loadgen.bench import run_bench
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.intended import schedule_of
from radixgate.loadgen.measurement import measure
from radixgate.loadgen.reports.run_folder import read_run
from radixgate.loadgen.study_config import StudyConfig
from radixgate.loadgen.workload_config import WorkloadConfig
from timed_server import Asked, Script, TimedServer, native_event, sse
from until import until

ANSWER = Script(
    (
        (0.0, sse(native_event("a", 1, prompt=9, cached=3))),
        (0.02, sse(native_event("ab", 2, prompt=9, cached=3, finish="length"), "[DONE]")),
    ),
    headers=(("x-radixgate-worker", "w1"),),
)
WORKERS = json.dumps(
    {"workers": [{"id": "w1", "in_flight": 1, "tokens_in_flight": 9, "load": None}, {"id": "w2"}]}
).encode()


def gateway(asked: Asked) -> Script:
    if asked.path == "/workers":
        return Script(((0.0, WORKERS),), content_type="application/json")
    return ANSWER


def config(url: str, **further: Any) -> BenchConfig:  # noqa: ANN401
    settings: dict[str, Any] = {
        "num_prompts": 20,
        "random_input_len": 5,
        "request_rate": 100.0,
        "warmup_requests": 0,
        "disable_tqdm": True,
        **further,
    }
    return BenchConfig(backend="sglang", base_url=url, **settings)


async def bench(settings: BenchConfig, study: StudyConfig | None = None) -> int:
    return await asyncio.to_thread(run_bench, settings, study=study)


@pytest.mark.slow
async def test_a_run_is_kept_with_what_the_gateway_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    async with TimedServer(gateway) as server:
        assert await bench(config(server.url, output_folder=str(folder), fleet_poll_s=0.05)) == 0
    assert {path.name for path in folder.iterdir()} == {
        *("run.json", "requests.jsonl", "fleet.jsonl"),
        *("summary.json", "summary.md", "report.html"),
    }
    run = read_run(folder)
    assert len(run.records) == 20
    assert run.polls[0].in_flight == {"w1": 1, "w2": 0}
    assert run.polls[0].kv_tokens_used == {"w1": None, "w2": None}
    # Random words have nothing in common but a letter now and then.
    assert all(0.0 <= (record.reusable_share or 0.0) < 0.6 for record in run.records)
    shown = capsys.readouterr().out
    assert "\nVALID" in shown or "\nINVALID" in shown


@pytest.mark.slow
async def test_several_processes_send_every_request_once_in_the_order_of_their_sessions() -> None:
    """Conversations of three turns: all turns of one go through one process, one by one."""
    answers = 0

    def script(asked: Asked) -> Script:
        nonlocal answers
        answers += 1
        return ANSWER

    settings = config(
        "http://unused",
        dataset_name="generated-shared-prefix",
        num_prompts=6,
        gsp_num_groups=2,
        gsp_prompts_per_group=3,
        gsp_system_prompt_len=8,
        processes=2,
        max_concurrency=4,
    )
    schedule = schedule_of(settings, WorkloadConfig(gsp_num_turns=3))
    async with TimedServer(script) as server:
        there = config(
            server.url, processes=2, max_concurrency=4, dataset_name="generated-shared-prefix"
        )
        run = await measure(there, schedule, SystemClock())
    assert answers == 18
    assert server.most_in_flight <= 4
    assert [record.index for record in run.records] == list(range(18))
    assert all(record.ok for record in run.records)
    assert [client.process for client in run.clients] == [0, 1]
    assert [client.requests for client in run.clients] == [9, 9]
    ends: dict[str, float] = {}
    for record in run.records:
        assert record.t_dispatch_s >= ends.get(record.session, 0.0)
        ends[record.session] = record.t_last_s
    sent = sorted(asked.body["text"] for asked in server.asked)
    assert sent == sorted(str(one.prompt.native()["text"]) for one in schedule)


@pytest.mark.slow
async def test_a_process_that_dies_ends_the_run_by_its_name() -> None:
    async with TimedServer(lambda _: Script((), end="hang")) as server:
        settings = config(server.url, processes=2)
        run = asyncio.create_task(measure(settings, schedule_of(settings), SystemClock()))
        await until(lambda: server.in_flight >= 4, within_s=60.0)
        victim = multiprocessing.active_children()[0]
        victim.kill()
        with pytest.raises(ProcessFailed, match=r"client process \d ended after 0"):
            await run
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"processes": 3, "max_concurrency": 2}, "--processes 3 is over --max-concurrency 2"),
        ({"processes": 2, "arrival": "rl-step"}, "needs --processes 1"),
        ({"processes": 0}, "--processes must be at least 1"),
        ({"goodput": ("ttft",)}, "--goodput ttft"),
        ({"settle_s": -1.0}, "--settle-s must not be negative"),
    ],
)
def test_impossible_settings_are_named(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        config("http://h", **settings)


@pytest.mark.slow
async def test_a_sweep_keeps_each_rate_apart_with_prompts_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with TimedServer(gateway) as server:
        settings = config(server.url, output_folder=str(tmp_path), num_prompts=5)
        assert await bench(settings, StudyConfig(sweep=(50.0, 100.0))) == 0
    folders = sorted(os.listdir(tmp_path))
    assert folders == ["00-rate-50", "01-rate-100"]
    seeds = [read_run(tmp_path / name).info.bench.seed for name in folders]
    assert seeds == [1, 2]
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows if row and row[0] in ("50", "100")] == ["50", "100"]


@pytest.mark.slow
async def test_the_search_stops_where_a_slow_server_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All requests keep ten seconds and none keeps a tenth of a millisecond."""
    async with TimedServer(gateway) as server:
        easy = config(server.url, goodput=("e2e:10000",), output_folder=str(tmp_path / "easy"))
        study = StudyConfig(
            find_goodput=True, search_from=100.0, search_to=200.0, search_attainment=0.5
        )
        assert await bench(easy, study) == 0
        assert "highest rate with 50.0% of the offered" in capsys.readouterr().out
        assert json.loads((tmp_path / "easy/goodput.json").read_text())["holds"] == 200.0
        hard = config(server.url, goodput=("e2e:0.1",))
        assert await bench(hard, study) == 1
        assert "even 100 sessions/s does not keep" in capsys.readouterr().out


@pytest.mark.slow
async def test_a_schedule_that_was_written_is_played_again_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "schedule.jsonl"
    sent: list[list[bytes]] = []
    for settings in ({"schedule_file": str(path)}, {"schedule_from": str(path), "seed": 9}):
        async with TimedServer(gateway) as server:
            there = config(server.url, extra_request_body='{"sampling_params": {}}', **settings)
            assert await bench(there) == 0
        texts = [asked.body["text"].encode() for asked in server.asked]
        sent.append(sorted(texts))
    assert sent[0] == sent[1]
    with pytest.raises(ConfigError, match=r"gone.jsonl: No such file"):
        schedule_of(config("http://h", schedule_from=str(tmp_path / "gone.jsonl")))


def test_a_search_needs_an_objective_and_a_rate_to_vary() -> None:
    with pytest.raises(ConfigError, match="needs --goodput"):
        run_bench(config("http://h"), study=StudyConfig(find_goodput=True))
    with pytest.raises(ConfigError, match="has no rate to vary"):
        run_bench(config("http://h", arrival="trace"), study=StudyConfig(sweep=(1.0,)))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"sweep": (1.0,), "find_goodput": True}, "give one of them"),
        ({"sweep": (0.0,)}, "over 0"),
        ({"search_from": 9.0, "search_to": 1.0}, "--search-from 9 is over --search-to 1"),
        ({"search_attainment": 1.0}, "between 0 and 1"),
        ({"search_repeats": 0}, "--search-repeats"),
    ],
)
def test_impossible_studies_are_named(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        StudyConfig(**settings)
