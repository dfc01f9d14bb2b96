"""Toy workers and a gateway of two processes, every way between them by mutual TLS."""

import asyncio
import ssl
from pathlib import Path

import aiohttp
import pytest

from authority import Authority
from live_fleet import RADIXGATE, READY_WITHIN_S, empty_fleet
from radixgate.processes import Child
from radixgate.ready_lines import GATEWAY_READY
from radixgate.tls import client_context

pytestmark = pytest.mark.slow


async def test_a_fleet_behind_tls_answers_by_grpc_and_by_http(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    own, gateway, client = ours.pair(), ours.pair("gateway"), ours.pair("client")
    worker_flags = ("--ssl-certfile", own.cert, "--ssl-keyfile", own.key)
    async with empty_fleet() as fleet:
        one = await fleet.add_worker(*worker_flags, "--ssl-ca-certs", ours.file)
        two = await fleet.add_worker(
            *worker_flags, "--ssl-ca-certs", ours.file, "--served-model-name", "other"
        )
        fleet.gateway = await Child.start(
            "gateway",
            [
                *(*RADIXGATE, "gateway", "--port", "0", "--processes", "2"),
                *("--worker-urls", f"grpcs://{one.grpc}", f"https://{two.http}"),
                *("--tls-cert-path", own.cert, "--tls-key-path", own.key),
                *("--tls-client-ca-path", ours.file, "--ca-cert-paths", ours.file),
                *("--client-cert-path", gateway.cert, "--client-key-path", gateway.key),
            ],
            ready=GATEWAY_READY,
        )
        url = (await fleet.gateway.wait_ready(READY_WITHIN_S))["url"]
        assert url.startswith("https://")
        known = client_context([ours.file], client.cert, client.key)
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=known))
        async with session:

            async def ready() -> bool:
                async with session.get(f"{url}/readiness") as answer:
                    ready_workers: int = (await answer.json())["ready_workers"]
                return ready_workers == 2

            while not await ready():
                await asyncio.sleep(0.05)
            for model in ("toy", "other"):
                body = {"model": model, "prompt": "hello", "max_tokens": 4, "ignore_eos": True}
                for _ in range(4):
                    async with session.post(f"{url}/v1/completions", json=body) as answer:
                        assert answer.status == 200, await answer.text()
                        assert (await answer.json())["usage"]["completion_tokens"] == 4
            async with session.get(f"{url}/get_server_info") as answer:
                assert len((await answer.json())["workers"]) == 2
        stranger = aiohttp.TCPConnector(ssl=client_context([ours.file], None, None))
        async with aiohttp.ClientSession(connector=stranger) as session:
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await session.get(f"https://{one.http}/health")
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await session.get(f"{url}/health")
