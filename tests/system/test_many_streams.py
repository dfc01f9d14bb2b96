"""Hundreds of slow streams through one gateway: nothing is lost, and nothing is out of order."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks/many_streams.py"


def free_ports(count: int) -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.mark.slow
def test_three_hundred_streams_arrive_whole_and_in_order() -> None:
    words = ["--streams", "300", "--seconds", "4", "--ports", *free_ports(2)]
    command = [sys.executable, str(BENCHMARK), *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "gateway       whole 300, events 6000 of 6000, wrong 0" in ran.stdout
