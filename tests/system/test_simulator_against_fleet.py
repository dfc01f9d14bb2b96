"""The benchmark that sets the simulator beside a real fleet: its work tells the policies apart."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks/simulator_against_fleet.py"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_schedule_tells_the_policies_apart_whether_workers_slow_each_other_down_or_not(
    tmp_path: Path,
) -> None:
    words = ["--only-simulate", "6", "--output", str(tmp_path)]
    command = [sys.executable, str(BENCHMARK), *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    steps = [line for line in ran.stdout.splitlines() if " before " in line]
    assert [line.split(":")[0].strip() for line in steps] == 2 * [
        "kv_cost before cache_aware",
        "cache_aware before random",
    ]
    apart = [line.rsplit(": ", 1)[1].split()[0] for line in steps]  # in standard deviations
    assert all(float(one) > 2 for one in apart)
