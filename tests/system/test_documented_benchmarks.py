"""What docs/performance.md tells people to measure with runs, here with less of everything."""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from free_ports import free_ports

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"benchmarks/(\w+)\.py")


def ports(count: int) -> Sequence[str]:
    return ["--ports", *map(str, free_ports(count))]


# By script: the words of a short run, and what it prints if it has measured.
SHORT: dict[str, tuple[Callable[[], Sequence[str]], str]] = {
    "decision": (lambda: ["-q", "-k", "kv_cost-8w"], "kv_cost: 8 workers, 2,048 tokens, page 64"),
    "mirror": (lambda: ["--entries", "5000", "--workers", "8"], "stored blocks a second"),
    "added_latency": (lambda: ["--requests", "20", *ports(2)], "added at the median"),
    "gateway_own_workers": (
        lambda: ["--requests", "10", "--rounds", "1", *ports(5)],
        "TTFT added, fifth turn",
    ),
    "many_streams": (
        lambda: ["--streams", "20", "--seconds", "4", *ports(2)],
        "whole 20, events 400 of 400, wrong 0",
    ),
}


def documented() -> Sequence[tuple[str, list[str]]]:
    """Each benchmark's name, and the words before its script's own."""
    (block,) = BLOCK.findall((ROOT / "docs/performance.md").read_text())
    commands = []
    for line in block.splitlines():
        words = line.split()
        (at,) = (n for n, word in enumerate(words) if SCRIPT.fullmatch(word))
        commands.append((SCRIPT.findall(words[at])[0], words[: at + 1]))
    return commands


def test_there_is_a_short_run_of_each() -> None:
    assert [name for name, _ in documented()] == list(SHORT)


@pytest.mark.parametrize(
    ("name", "words"), [pytest.param(*command, id=command[0]) for command in documented()]
)
def test_a_documented_benchmark_measures(name: str, words: list[str]) -> None:
    own, printed = SHORT[name]
    assert words[0] == ".venv/bin/python"
    command = [sys.executable, *words[1:], *own()]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert printed in ran.stdout, ran.stdout + ran.stderr
