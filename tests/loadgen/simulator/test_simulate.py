"""`radixgate simulate` from its settings to its JSON."""

import json
import math
from pathlib import Path

import pytest

from radixgate.cli import main
from radixgate.errors import ConfigError
from radixgate.loadgen.simulator.config import SimulateConfig
from radixgate.loadgen.simulator.simulate import Trial

TRACE = Path(__file__).parents[2] / "data/mooncake_conversation_200.jsonl"
FIGURES = {"mean", "p50", "p95", "p99"}


@pytest.mark.slow
def test_it_prints_a_table_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "out.json"
    words = f"simulate --trace {TRACE} --workers 4 --kv-blocks 1000 --block-size 512 --load 0.5"
    words += f" --engine study-70b --policies kv_cost,oracle --seed 0 --json {out}"
    assert main(words.split()) == 0
    results = json.loads(out.read_bytes())["results"]
    assert list(results) == ["kv_cost", "oracle"]
    for one in results.values():
        assert 0.0 <= one["hit_rate"] <= 1.0
        for name in ("ttft_s", "e2e_s", "tpot_s"):
            assert one[name].keys() == FIGURES
            assert 0.0 < one[name]["p50"] <= one[name]["p95"] <= one[name]["p99"]
        assert one["imbalance"] >= 1.0
        assert one["requests_per_s"] > 0.0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("200 requests at ")
    assert [line.split()[0] for line in printed[1:]] == ["policy", "kv_cost", "oracle"]


@pytest.mark.slow
def test_goodput_and_a_page_with_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, out = tmp_path / "page.html", tmp_path / "out.json"
    words = f"simulate --trace {TRACE} --max-requests 60 --capacity 5 --policies random,kv_cost"
    words += f" --goodput ttft:1500 tpot:200 --plot {page} --json {out}"
    assert main(words.split()) == 0
    results = json.loads(out.read_bytes())["results"]
    for one in results.values():
        good = one["goodput"]
        assert good["objective_ms"] == {"ttft": 1500.0, "tpot": 200.0}
        assert 0.0 < good["share"] <= 1.0
        assert good["requests_per_s"] == pytest.approx(good["share"] * one["requests_per_s"])
    assert capsys.readouterr().out.splitlines()[1].split()[-2:] == ["good", "good/s"]
    text = page.read_text()
    assert "60 requests at 4.00/s" in text
    assert text.count("Plotly.newPlot(") == 2
    assert '"name":"kv_cost"' in text


def test_capacity_is_measured_unless_given() -> None:
    given = Trial(SimulateConfig(trace=str(TRACE), max_requests=40, capacity=3.0))
    measured = Trial(SimulateConfig(trace=str(TRACE), max_requests=40))
    assert given.capacity() == 3.0
    assert 1.0 < measured.capacity() < 100.0
    assert measured.capacity() == measured.capacity()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        pytest.param("--policies kv-cost", "did you mean 'kv_cost'", id="policy"),
        pytest.param("--policies ,", "names none", id="no-policy"),
        pytest.param("--policies kv_cost_slo", "neither is given", id="no-aim"),
        pytest.param("--ttft-slo 9", "kv_cost_slo: name it among --policies", id="aim-of-nobody"),
        pytest.param("--cache-threshold 0.5", "cache_aware: name it among", id="thresholds"),
        pytest.param("--num-prompts 5", "of a --trace, give --max-requests", id="num-prompts"),
        pytest.param("--load 0", "--load", id="load"),
        pytest.param("--event-loss 1", "--event-loss", id="loss"),
        pytest.param("--workers 0", "--workers", id="workers"),
        pytest.param("--share-delay -1", "--share-delay", id="share-delay"),
        pytest.param("--goodput itl_p99:5", "no single tokens", id="goodput"),
        pytest.param("--goodput ttft", "each name once, of ttft, e2e, tpot\n", id="goodput-word"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(
    words: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "--trace", str(TRACE), *words.split()]) == 2
    assert complaint in capsys.readouterr().err


def test_rows_without_time_and_session_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"input_length": 9, "output_length": 1, "hash_ids": [1]}\n')
    with pytest.raises(ConfigError, match="have no timestamp"):
        Trial(SimulateConfig(trace=str(path)))


@pytest.mark.parametrize(
    ("policies", "least"), [("oracle", 32), ("oracle,random", 64), ("random,oracle", 64)]
)
def test_a_request_too_large_is_told_before_anything_is_simulated(
    policies: str, least: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 640, "output_length": 384, "hash_ids": []}\n')
    words = f"simulate --trace {path} --block-size 16 --workers 2 --policies {policies}"
    assert main([*words.split(), "--kv-blocks", str(least - 1)]) == 2
    told = capsys.readouterr()
    assert "a request of 1024 tokens cannot run in a pool of" in told.err
    assert f"give --kv-blocks {least} or more" in told.err
    assert not told.out
    assert main([*words.split(), "--kv-blocks", str(least)]) == 0


def test_how_a_run_is_read_takes_a_run() -> None:
    with pytest.raises(ConfigError, match="give --fit too"):
        SimulateConfig(shared_cores=True)


@pytest.mark.parametrize("name", ["load", "capacity"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.inf])
def test_a_pace_without_end_is_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"^--{name} must be over 0 and finite, not"):
        SimulateConfig(**{name: value})  # type: ignore[arg-type]
