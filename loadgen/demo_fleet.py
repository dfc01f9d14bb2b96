"""A fleet for one demonstration: fresh workers, a gateway, and nothing left of them afterwards."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from radixgate.errors import ProcessFailed
from radixgate.loadgen.demo_config import DemoConfig
from radixgate.processes import Child
from radixgate.ready_lines import GATEWAY_READY, WORKER_READY

RADIXGATE = (sys.executable, "-m", "radixgate.cli")
_GRACE_S = 5.0
_ASK_EVERY_S = 0.1
_ASK_TIMEOUT_S = 5.0


@asynccontextmanager
async def fresh_fleet(config: DemoConfig, policy: str) -> AsyncIterator[str]:
    """The URL of a gateway with `policy` over new workers, all of them ready to be asked.

    All listen on 127.0.0.1, on ports the system picks. Raises ProcessFailed with the last lines
    of a process that does not get ready in time.
    """
    workers: list[Child] = []
    gateway: Child | None = None
    try:
        for number in range(1, config.workers + 1):
            workers.append(await _start_worker(config, number))
        matches = await asyncio.gather(
            *(worker.wait_ready(config.start_timeout_s) for worker in workers)
        )
        urls = [f"grpc://{match['grpc']}" for match in matches]
        gateway = await _start_gateway(policy, urls)
        url = (await gateway.wait_ready(config.start_timeout_s))["url"]
        await _all_ready(url, config)
        yield url
    finally:
        if gateway is not None:
            await gateway.stop(_GRACE_S)
        await asyncio.gather(*(worker.stop(_GRACE_S) for worker in workers))


async def _start_worker(config: DemoConfig, number: int) -> Child:
    threads = config.threads or max(1, (os.cpu_count() or 1) // config.workers)
    flags = ["--model-path", config.model_path, "--port", "0", "--grpc-port", "0"]
    flags += ["--page-size", str(config.page_size), "--threads", str(threads)]
    flags += ["--max-total-tokens", str(config.pool_tokens)]
    return await Child.start(f"worker {number}", (*RADIXGATE, "worker", *flags), ready=WORKER_READY)


async def _start_gateway(policy: str, urls: Sequence[str]) -> Child:
    flags = ["--worker-urls", *urls, "--policy", policy, "--port", "0"]
    return await Child.start("gateway", (*RADIXGATE, "gateway", *flags), ready=GATEWAY_READY)


class _Worker(msgspec.Struct):
    state: str


class _Workers(msgspec.Struct):
    workers: list[_Worker]


async def _all_ready(url: str, config: DemoConfig) -> None:
    """A gateway may be ready with its first worker; the comparison needs all of them."""
    timeout = aiohttp.ClientTimeout(total=_ASK_TIMEOUT_S)
    ready = 0
    try:
        async with (
            asyncio.timeout(config.start_timeout_s),
            aiohttp.ClientSession(timeout=timeout) as session,
        ):
            while ready < config.workers:
                async with session.get(f"{url}/workers") as answer:
                    found = msgspec.json.decode(await answer.read(), type=_Workers)
                ready = sum(worker.state == "ready" for worker in found.workers)
                if ready < config.workers:
                    await asyncio.sleep(_ASK_EVERY_S)
    except (TimeoutError, aiohttp.ClientError, msgspec.DecodeError) as error:
        raise ProcessFailed(
            f"the gateway has {ready} of {config.workers} workers ready: {error}"
        ) from error
