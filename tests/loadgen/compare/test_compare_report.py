"""What a comparison says of its runs, made of their folders alone."""

import math
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from radixgate.analysis.validity import ClientHealth
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.compare.report import COMPARISON, Comparison, RunOf, write_comparison
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.reports.run_folder import run_info, write_run
from radixgate.loadgen.workload_config import WorkloadConfig
from request_records import record

ARMS = ("quick", "slow")


def compared(folder: Path, bench: BenchConfig, *, loop_lag_s: float = 0.0) -> dict[str, str]:
    """Two rounds of ten requests, which `slow` answers after 2 s and `quick` after 1: each row of
    the table by its name, and the lines after it."""

    def due_s(n: int) -> float:
        return float(n) if bench.open_loop else 0.0

    runs = []
    for place, (arm, number) in enumerate((arm, number) for number in (0, 1) for arm in ARMS):
        takes_s = (1.0 if arm == "quick" else 2.0) + 0.001 * number
        records = [
            record((n + takes_s, 1), sent=float(n), due=due_s(n), index=n) for n in range(10)
        ]
        # One of four runs has a client that is late.
        client = ClientHealth(0, 10, 0.1, loop_lag_s if place == 3 else 0.0, 0.01)
        info = run_info((bench, WorkloadConfig(), ArrivalConfig()), "abcd", [client], "2026-01-01")
        write_run(folder / str(place), info, records, [])
        runs.append(RunOf(arm, number, str(place)))
    encoded = msgspec.json.encode(Comparison(ARMS, runs, "as they were", "abcd"))
    (folder / COMPARISON).write_bytes(encoded)
    text, worked = write_comparison(folder)
    assert worked
    return {line[:36].rstrip(): line for line in text.splitlines()}


def test_a_sure_difference_is_judged(tmp_path: Path) -> None:
    lines = compared(tmp_path, BenchConfig(request_rate=1.0))
    assert lines["response TTFT, mean (ms)"].endswith("WORSE")
    assert "round 2, slow: VALID" in lines


def test_nothing_is_judged_where_a_run_measured_its_client(tmp_path: Path) -> None:
    lines = compared(tmp_path, BenchConfig(request_rate=1.0), loop_lag_s=0.1)
    row = lines["response TTFT, mean (ms)"]
    assert "+1000.00" in row
    assert not any(line.endswith(("WORSE", "better")) for line in lines.values())
    assert "Nothing is judged better or worse wh" in lines


@pytest.mark.parametrize("rate", [1.0, math.inf])
def test_an_objective_counts_from_the_intended_time_if_there_is_one(
    tmp_path: Path, rate: float
) -> None:
    lines = compared(tmp_path, BenchConfig(request_rate=rate, goodput=("ttft:1500",)))
    assert lines["objective kept (%)"].split()[3:5] == ["100.00", "0.00"]


def test_a_run_that_failed_says_why(tmp_path: Path) -> None:
    refused = '{"error": {"message": "9419 tokens; the context of 8192 is full"}}'
    for name, arm in enumerate(ARMS):
        failed = replace(record(failure="HTTP 400", end=0.1), failure_detail=refused)
        sections = (BenchConfig(), WorkloadConfig(), ArrivalConfig())
        info = run_info(sections, "abcd", [ClientHealth(0, name + 1, 0.1, 0.0, 0.01)], "2026-01-01")
        failures = [replace(failed, index=n) for n in range(name + 1)]
        write_run(tmp_path / arm, info, failures, [])
    runs = [RunOf(arm, 0, arm) for arm in ARMS]
    encoded = msgspec.json.encode(Comparison(ARMS, runs, "as they were", "abcd"))
    (tmp_path / COMPARISON).write_bytes(encoded)
    text, worked = write_comparison(tmp_path)
    assert not worked
    assert "  HTTP 400: 2, the first: 9419 tokens; the context of 8192 is full" in text.splitlines()
