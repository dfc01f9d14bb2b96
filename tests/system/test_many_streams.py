"""Hundreds of slow streams through one gateway: nothing is lost, and nothing is out of order."""

import subprocess
import sys
from pathlib import Path

import pytest

from free_ports import free_ports

BENCHMARK = Path(__file__).parents[2] / "benchmarks/many_streams.py"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_three_hundred_streams_arrive_whole_and_in_order() -> None:
    words = ["--streams", "300", "--seconds", "4", "--ports", *map(str, free_ports(2))]
    command = [sys.executable, str(BENCHMARK), *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=360, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "gateway       whole 300, events 6000 of 6000, wrong 0" in ran.stdout
