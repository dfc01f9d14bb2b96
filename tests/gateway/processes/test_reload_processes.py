"""SIGHUP and POST /reload of a gateway of two processes, which read a file."""

import asyncio
import signal
from pathlib import Path

import pytest

from gateway_processes import processes
from scripted_worker import ScriptedWorker
from small_gateway import CHAT, chat_body

pytestmark = pytest.mark.slow


async def test_a_changed_file_holds_at_every_process(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    async with ScriptedWorker() as worker:
        file.write_text(f"gateway:\n  policy: round_robin\n  worker_urls: [{worker.url}]\n")
        async with processes("--config", str(file)) as served:
            await served.ready(1)
            file.write_text(f"gateway:\n  policy: least_load\n  worker_urls: [{worker.url}]\n")
            answer = await served.post("/reload", b"")
            assert answer.json == {"changed": ["gateway.policy"], "needs_restart": []}
            bodies = [chat_body(f"q{n}") for n in range(16)]
            answers = await asyncio.gather(*(served.post(CHAT, body) for body in bodies))
            assert {one.header("x-radixgate-policy") for one in answers} == {"least_load"}
            file.write_text("gateway:\n  policy: no_such\n")
            assert (await served.post("/reload", b"")).status == 400
            file.write_text("gateway:\n  policy: random\n  port: 1\n  worker_urls: []\n")
            served.process.send_signal(signal.SIGHUP)
            await served.ready(0)
            assert (await served.get("/get_server_info")).json["gateway"]["policy"] == "random"
