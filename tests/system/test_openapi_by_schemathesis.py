"""A stranger's client that knows only `/openapi.json` finds nothing wrong."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from live_fleet import live_fleet
from scripted_worker import ScriptedWorker, json_answer
from small_gateway import small_gateway

SUPPORT = Path(__file__).parents[1] / "support"
PASSED_ON = "^/(v1/(embeddings|classify|rerank|responses)|rerank)$"
# One that begins holds everybody else's requests now and then.
EXPERIMENTS = "^/experiments"
# Its client sees each of these as it comes, long before so much time has gone.
LONGEST_S = 600.0


async def schemathesis(at: str, folder: Path, *flags: str) -> tuple[int, str]:
    """Its exit status and what it printed, from a fixed seed. What it notes goes to `folder`."""
    words: Sequence[str] = [
        *("run", f"http://{at}/openapi.json", "--url", f"http://{at}", "--no-color"),
        *("--seed", "1", "--max-examples", "5", "--generation-deterministic", *flags),
    ]
    command = (sys.executable, "-m", "schemathesis.cli", *words)
    run = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tame_requests", "PYTHONPATH": str(SUPPORT)},
    )
    try:
        async with asyncio.timeout(LONGEST_S):
            printed, _ = await run.communicate()
    finally:
        if run.returncode is None:
            run.kill()
            await run.wait()
    return run.returncode or 0, printed.decode(errors="replace")


@pytest.mark.slow
@pytest.mark.timeout(700)
async def test_everything_that_our_own_workers_answer(tmp_path: Path) -> None:
    async with live_fleet(1) as fleet:
        status, printed = await schemathesis(
            fleet.gateway_at, tmp_path, "--exclude-path-regex", f"{PASSED_ON}|{EXPERIMENTS}"
        )
    assert status == 0, printed


@pytest.mark.slow
@pytest.mark.timeout(700)
async def test_everything_that_is_passed_on(tmp_path: Path) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda _: json_answer({"data": []})
        status, printed = await schemathesis(
            f"127.0.0.1:{gateway.port}", tmp_path, "--include-path-regex", PASSED_ON
        )
        assert worker.requests
    assert status == 0, printed
