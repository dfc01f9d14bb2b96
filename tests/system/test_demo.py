"""`make demo` as the README says it: routing by cache must show, on the embedded model."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The demo ends itself after six minutes; the rest is for making the environment.
LIMIT_S = 900


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S + 60)
def test_the_cache_is_hit_more_and_the_first_token_comes_sooner() -> None:
    subprocess.run(["make", "demo"], cwd=ROOT, check=True, timeout=LIMIT_S)
    figures = json.loads((ROOT / "out/demo.json").read_text())
    blind, aware = figures["round_robin"], figures["cache_aware"]
    assert aware["hit_rate"] >= blind["hit_rate"] + 0.15, figures
    assert blind["ttft_ms"]["p50"] >= 1.5 * aware["ttft_ms"]["p50"], figures
    assert {"p50", "p99"} <= aware["ttft_ms"].keys()
    assert aware["requests_per_s"] > 0
