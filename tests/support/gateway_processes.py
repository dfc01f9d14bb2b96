"""A gateway of several processes, started as its users start it."""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from radixgate.ready_lines import GATEWAY_READY
from raw_client import Answer, ask, request
from small_gateway import CHAT, chat_body
from until import PATIENCE_S


class Processes:
    """A started gateway and its children."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port

    async def get(self, path: str) -> Answer:
        return await ask(self.port, request(path, method="GET"))

    async def post(self, path: str, body: object) -> Answer:
        return await ask(self.port, request(path, body))

    async def chat(self, text: str) -> Answer:
        return await self.post(CHAT, chat_body(text))

    async def ready(self, workers: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while (await self.get("/readiness")).json["ready_workers"] != workers:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def metric(self, name: str) -> float:
        text = (await self.get("/metrics")).body.decode()
        values = [line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith(name)]
        return sum(map(float, values))

    def children(self) -> list[int]:
        """Their process ids."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in path.read_text().split()]


@asynccontextmanager
async def processes(*flags: str, count: int = 2) -> AsyncIterator[Processes]:
    # A parent that is killed leaves its folder behind: here, where it is swept up.
    folder = tempfile.TemporaryDirectory(prefix="rg-")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "radixgate.cli", "gateway", "--port", "0"),
        *("--processes", str(count), "--health-check-interval-secs", "0.1", *flags),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": folder.name},
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = (await process.stdout.readline()).decode()
        ready = re.match(GATEWAY_READY, line)
        assert ready, line
        yield Processes(process, int(ready["url"].rsplit(":", 1)[1]))
    finally:
        if process.returncode is None:
            process.kill()
        # To the end of the output, which the children share: then they are gone as well.
        await process.communicate()
        folder.cleanup()
