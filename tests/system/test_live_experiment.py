"""A switchback on a real gateway over real workers, and its records read by the report."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from live_fleet import RADIXGATE, LiveFleet, live_fleet
from until import PATIENCE_S

pytestmark = pytest.mark.slow
SETTINGS = """
experiments:
  turns:
    kind: switchback
    a: round_robin
    b: kv_cost
    pairs: 2
    block_s: 2
    washout_s: 0.5
    hold_cap_s: 1
    seed: 11
    metrics: [ttft_mean, hit_rate]
"""


def content_of(file: str) -> str:
    return Path(file).read_text()


async def ask(fleet: LiveFleet, number: int) -> int:
    text = f"you are helpful, and topic {number % 4} is all you know. " * 4
    body = {
        "model": "toy",
        "messages": [{"role": "user", "content": f"{text} question {number:05}"}],
        "max_tokens": 4,
        "temperature": 0,
        "stream": True,
    }
    answer = await fleet.stream("/v1/chat/completions", body)
    assert answer.done
    return answer.status


async def ended(fleet: LiveFleet) -> dict[str, Any]:
    _, _, row = await fleet.get("/experiments/turns")
    assert isinstance(row, dict)
    return row


async def traffic(fleet: LiveFleet, client: int) -> list[int]:
    statuses, number = [], client
    while (await ended(fleet))["state"] == "running":
        statuses.append(await ask(fleet, number))
        number += 4
    return statuses


async def test_a_short_switchback_and_its_report(tmp_path: Path) -> None:
    settings = tmp_path / "gateway.yaml"
    settings.write_text(SETTINGS)
    folder = tmp_path / "records"
    flags = ("--config", str(settings), "--experiment-folder", str(folder))
    async with live_fleet(2, gateway_flags=flags) as fleet:
        status, _, row = await fleet.post("/experiments/turns/start", {})
        assert (status, row["state"]) == (200, "running")
        committed = row["schedule_sha256"]
        answered = await asyncio.gather(*(traffic(fleet, client) for client in range(4)))
        assert {status for statuses in answered for status in statuses} == {200}
        async with asyncio.timeout(PATIENCE_S):
            while (row := await ended(fleet))["state"] != "over":
                await asyncio.sleep(0.05)
        assert row["reason"] == "finished"
        assert row["schedule_sha256"] == committed
        assert row["now"]["switches"] == 3
        metrics = (await fleet.get("/metrics"))[2]
        assert 'radixgate_experiment_switches_total{experiment="turns"} 3.0' in metrics
        for arm in "AB":
            assert row["requests"][arm]["ok"] > 0
        words = [*RADIXGATE, "experiment", "report", row["file"]]
        report = await asyncio.to_thread(
            subprocess.run, words, capture_output=True, text=True, timeout=300, check=False
        )
    assert report.returncode in (0, 1), report.stderr  # 1: too short to be VALID
    assert "ttft_mean" in report.stdout
    assert "you are helpful" not in content_of(row["file"])
