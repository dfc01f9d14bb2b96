"""The README's commands, run as written, on the embedded model."""

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from radixgate.processes import Child
from radixgate.ready_lines import GATEWAY_READY, WORKER_READY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="module"),
]

ROOT = Path(__file__).parents[2]
COMMANDS = [
    block
    for block in re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    if "make demo" not in block  # tests/system/test_demo.py runs it
]
UP, STREAM, SECOND_TURN, WORKERS, BEFORE_OTHERS, OWN_FLEET, BENCH = COMMANDS


def run(command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="up")
async def make_up() -> AsyncIterator[Child]:
    assert UP == "make up\n"
    child = await Child.start("make up", ["bash", "-c", UP], ready="Try, in another terminal")
    try:
        await child.wait_ready(300.0)
        yield child
    finally:
        await child.stop(30.0)
    assert not any("Traceback" in line for line in child.tail()), child.tail()


async def test_the_first_answer_is_streamed_and_in_english(up: Child) -> None:
    *events, done = [line for line in run(STREAM).splitlines() if line]
    assert done == "data: [DONE]"
    assert len(events) > 3
    deltas = [json.loads(line.removeprefix("data: "))["choices"][0]["delta"] for line in events]
    assert "Paris" in "".join(delta["content"] for delta in deltas)


async def test_the_second_turn_goes_to_the_same_worker_and_is_cached(up: Child) -> None:
    (first_worker,) = [row["id"] for row in rows() if row["blocks_mirrored"]]
    head, body = run(SECOND_TURN).split("\n\n")
    assert f"x-radixgate-worker: {first_worker}" in head
    answer = json.loads(body)
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    assert answer["choices"][0]["message"]["content"]


async def test_the_workers_are_shown(up: Child) -> None:
    assert [row["state"] for row in rows()] == ["ready", "ready"]


async def test_a_fleet_of_ones_own_is_measured_and_serves_by_http_as_others_do(up: Child) -> None:
    """Beside the one that is up; the README takes other ports for it."""
    *workers, gateway = OWN_FLEET.splitlines()
    started: list[Child] = []
    try:
        for words, pattern in (
            *((line, WORKER_READY) for line in workers),
            (gateway, GATEWAY_READY),
            (BEFORE_OTHERS, GATEWAY_READY),
        ):
            started.append(await Child.start("own", ["bash", "-c", words], ready=pattern))
            await started[-1].wait_ready(120.0)
        async with asyncio.timeout(30):
            for port in (8001, 8002):
                while '"ready_workers":2' not in run(f"curl -s http://127.0.0.1:{port}/readiness"):
                    await asyncio.sleep(0.2)
        table = await asyncio.to_thread(run, BENCH)
        assert re.search(r"Successful requests: +16\b", table)
        assert "Cached" in table
        assert "data: [DONE]" in run(STREAM.replace(":8000", ":8002"))
    finally:
        for child in reversed(started):
            await child.stop(20.0)


def rows() -> list[dict[str, object]]:
    listed: list[dict[str, object]] = json.loads(run(WORKERS))["workers"]
    return listed
