"""`radixgate compare`: arms in turn and back, the same bytes to each, and what differed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from radixgate.cli import main
from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.compare.config import CompareConfig
from radixgate.loadgen.compare.run import run_compare
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.workload_config import WorkloadConfig
from timed_server import Asked, Script, TimedServer, native_event, sse


def answering(after_s: float) -> Script:
    event = native_event("ab", 2, prompt=9, cached=3, finish="length")
    return Script(((after_s, sse(event, "[DONE]")),), headers=(("x-radixgate-worker", "w1"),))


def script(after_s: float) -> Any:  # noqa: ANN401
    def answer(asked: Asked) -> Script:
        return answering(0.0 if asked.path == "/flush_cache" else after_s)

    return answer


def bench(folder: Path, **further: Any) -> BenchConfig:  # noqa: ANN401
    return BenchConfig(
        num_prompts=12,
        random_input_len=5,
        request_rate=100.0,
        warmup_requests=0,
        output_folder=str(folder),
        fleet_poll_s=0.0,
        disable_tqdm=True,
        **further,
    )


@pytest.mark.slow
async def test_two_gateways_are_measured_abba_with_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with TimedServer(script(0.02)) as quick, TimedServer(script(0.52)) as slow:
        compare = CompareConfig(urls=(f"quick={quick.url}", f"slow={slow.url}"), rounds=2)
        arguments = (compare, bench(tmp_path), WorkloadConfig(), ArrivalConfig())
        assert await asyncio.to_thread(run_compare, *arguments) == 0
    told = json.loads((tmp_path / "compare.json").read_text())
    assert [run["arm"] for run in told["runs"]] == ["quick", "slow", "slow", "quick"]
    bodies = [
        sorted(asked.raw_body for asked in server.asked if asked.path == "/generate")
        for server in (quick, slow)
    ]
    assert bodies[0] == bodies[1]
    assert [asked.path for asked in quick.asked].count("/flush_cache") == 2
    found = json.loads((tmp_path / "differences.json").read_text())["differences"]["slow"]
    ttft = next(one for one in found if one["metric"] == "response TTFT, P50")
    assert ttft["difference"] == pytest.approx(500.0, abs=300.0)
    assert len(ttft["pairs"]) == 2
    shown = capsys.readouterr().out
    assert "slow against quick (gateways that were there, caches and mirrors flushed" in shown
    first = {name: (tmp_path / name).read_bytes() for name in ("differences.json", "compare.html")}
    assert main(["report", str(tmp_path)]) == 0
    assert {name: (tmp_path / name).read_bytes() for name in first} == first


def test_the_order_turns_back_each_round() -> None:
    compare = CompareConfig(policies=("a", "b", "c"), rounds=3)
    assert [arm.name for arm, _ in compare.order] == [*"abc", *"cba", *"abc"]
    assert [number for _, number in compare.order] == [0] * 3 + [1] * 3 + [2] * 3


def test_gateways_are_named_by_their_address_unless_named() -> None:
    compare = CompareConfig(urls=("http://127.0.0.1:1/", "new=http://127.0.0.1:2/"))
    assert [(arm.name, arm.url) for arm in compare.arms] == [
        ("127.0.0.1:1", "http://127.0.0.1:1"),
        ("new", "http://127.0.0.1:2"),
    ]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({}, "either --policies or --urls", id="nothing"),
        pytest.param({"policies": ("a", "b"), "urls": ("x", "y")}, "either", id="both"),
        pytest.param({"policies": ("a",)}, "two arms", id="one"),
        pytest.param({"policies": ("a", "a")}, "different names", id="twice"),
        pytest.param({"policies": ("a", "b"), "rounds": 0}, "--rounds", id="rounds"),
    ],
)
def test_impossible_comparisons_are_named(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        CompareConfig(**settings)


def test_a_policy_that_keeps_aims_is_refused_before_anything_starts(tmp_path: Path) -> None:
    compare = CompareConfig(policies=("kv_cost", "kv_cost_slo"))
    with pytest.raises(ConfigError, match=r"^kv_cost_slo keeps --ttft-slo .* give --urls$"):
        run_compare(compare, bench(tmp_path), WorkloadConfig(), ArrivalConfig())
    assert not list(tmp_path.iterdir())


def test_one_server_is_no_comparison(tmp_path: Path) -> None:
    compare = CompareConfig(policies=("a", "b"))
    with pytest.raises(ConfigError, match="--base-url is one server"):
        run_compare(
            compare,
            bench(tmp_path, base_url="http://h"),
            WorkloadConfig(),
            ArrivalConfig(),
        )


@pytest.mark.slow
def test_two_policies_on_toy_workers(tmp_path: Path) -> None:
    """The whole way once: fleets that are started, measured and gone again."""
    compare = CompareConfig(
        policies=("round_robin", "cache_aware"),
        rounds=1,
        model_path="toy",
        workers=2,
        threads=1,
        max_total_tokens=4096,
        start_timeout_s=60.0,
    )
    settings = BenchConfig(
        dataset_name="generated-shared-prefix",
        gsp_num_groups=5,
        gsp_prompts_per_group=6,
        gsp_system_prompt_len=40,
        gsp_question_len=3,
        gsp_output_len=2,
        request_rate=20.0,
        output_folder=str(tmp_path),
        disable_tqdm=True,
    )
    assert run_compare(compare, settings, WorkloadConfig(), ArrivalConfig()) == 0
    found = json.loads((tmp_path / "differences.json").read_text())["differences"]["cache_aware"]
    cached = next(one for one in found if one["metric"] == "cached prompt tokens")
    assert cached["arm"] >= cached["baseline"]
    assert (tmp_path / "compare.html").stat().st_size > 1_000_000
