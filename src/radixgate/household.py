"""A gateway and its workers as children on this machine, brought up and taken down in order."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence

import aiohttp
import msgspec

from radixgate.errors import ProcessFailed
from radixgate.processes import Child, how_it_ended
from radixgate.ready_lines import GATEWAY_READY, WORKER_READY
from radixgate.up_config import UpConfig

RADIXGATE = (sys.executable, "-m", "radixgate.cli")
# Beyond its own grace a child gets this long to write its last line.
_LAST_LINE_S = 5.0
_ASK_EVERY_S = 0.1
_ASK_TIMEOUT_S = 5.0


class Household:
    """One gateway and its workers. Whatever happens, `stop` leaves none of them behind."""

    def __init__(
        self,
        config: UpConfig,
        *,
        program: Sequence[str] = RADIXGATE,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`program` is what `worker` and `gateway` are commands of; `say` gets what they print."""
        self._config = config
        self._program = tuple(program)
        self._say = say
        self._workers: list[Child] = []
        self._worker_urls: list[str] = []
        self._gateway: Child | None = None
        self.url = ""  # of the gateway, once it is ready
        self.model = ""  # what clients call it

    async def start(self) -> None:
        """Start everything; done when the gateway can use every worker.

        Raises ProcessFailed, with the last lines, if one of them ends first or takes too long.
        """
        timeout_s = self._config.start_timeout_s
        for number in range(1, self._config.workers + 1):
            self._workers.append(await self._start(f"worker {number}", self._worker_flags()))
        matches = await asyncio.gather(*(child.wait_ready(timeout_s) for child in self._workers))
        self._worker_urls = [f"grpc://{match['grpc']}" for match in matches]
        self.model = matches[0]["model"]
        await self._open(self._config.policy)

    async def change_policy(self, policy: str) -> None:
        """Another gateway with this policy before the same workers, whose caches stay; at `url`.

        Raises ProcessFailed as `start` does.
        """
        if self._gateway is not None:
            await self._stop(self._gateway, self._config.drain_s + _LAST_LINE_S)
        await self._open(policy)

    async def watch(self) -> str:
        """Wait until nothing is left that could serve; what is gone, in words."""
        left = {asyncio.create_task(child.wait()): child for child in self._children()}
        try:
            while self._gateway in left.values() and len(left) > 1:
                done, _ = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                for end in done:
                    self._say(f"{left.pop(end).name} {how_it_ended(end.result())}")
        finally:
            for end in left:
                end.cancel()
        return "no worker is left" if self._gateway in left.values() else "the gateway is gone"

    async def stop(self) -> None:
        """Drain the gateway, then the workers. Again is harmless."""
        grace_s = self._config.drain_s + _LAST_LINE_S
        if self._gateway is not None:
            await self._stop(self._gateway, grace_s)
        # Only now: what the gateway still answers is answered by them.
        await asyncio.gather(*(self._stop(worker, grace_s) for worker in self._workers))

    def kill(self) -> None:
        """End them all at once, answers unfinished."""
        for child in self._children():
            child.kill()

    async def _open(self, policy: str) -> None:
        self._gateway = await self._start("gateway", self._gateway_flags(policy))
        self.url = (await self._gateway.wait_ready(self._config.start_timeout_s))["url"]
        await self._all_joined()

    async def _all_joined(self) -> None:
        """A gateway is ready before its workers have joined; a request then would be refused."""
        joined = 0
        timeout = aiohttp.ClientTimeout(total=_ASK_TIMEOUT_S)
        try:
            async with (
                asyncio.timeout(self._config.start_timeout_s),
                aiohttp.ClientSession(timeout=timeout) as session,
            ):
                while True:
                    joined = await self._count_joined(session)
                    if joined >= self._config.workers:
                        return
                    await asyncio.sleep(_ASK_EVERY_S)
        except (TimeoutError, aiohttp.ClientError, msgspec.DecodeError) as exc:
            raise ProcessFailed(
                f"the gateway has {joined} of {self._config.workers} workers ready: {exc!r}"
            ) from exc

    async def _count_joined(self, session: aiohttp.ClientSession) -> int:
        for child in self._children():
            if child.exit_code is not None:
                await child.wait()
                raise ProcessFailed(child.report(how_it_ended(child.exit_code)))
        async with session.get(f"{self.url}/workers") as answer:
            found = msgspec.json.decode(await answer.read(), type=_Workers)
        return sum(worker.state == "ready" for worker in found.workers)

    async def _start(self, name: str, flags: Sequence[str]) -> Child:
        return await Child.start(
            name,
            (*self._program, *flags),
            ready=GATEWAY_READY if flags[0] == "gateway" else WORKER_READY,
            on_line=lambda line: self._say(f"[{name}] {line}"),
        )

    async def _stop(self, child: Child, grace_s: float) -> None:
        if child.exit_code is None and (code := await child.stop(grace_s)) != 0:
            self._say(f"{child.name} {how_it_ended(code)}")

    def _children(self) -> list[Child]:
        return [*self._workers, *([self._gateway] if self._gateway else [])]

    def _worker_flags(self) -> list[str]:
        config = self._config
        threads = config.threads or max(1, (os.cpu_count() or 1) // config.workers)
        flags = ["worker", "--model-path", config.model_path, "--port", "0", "--grpc-port", "0"]
        flags += ["--page-size", str(config.page_size), "--threads", str(threads)]
        if config.max_total_tokens is not None:
            flags += ["--max-total-tokens", str(config.max_total_tokens)]
        return [*flags, "--shutdown-grace-period-secs", f"{config.drain_s:g}"]

    def _gateway_flags(self, policy: str) -> list[str]:
        config = self._config
        flags = ["gateway", "--worker-urls", *self._worker_urls, "--policy", policy]
        flags += ["--host", config.host, "--port", str(config.port)]
        return [*flags, "--shutdown-grace-period-secs", f"{config.drain_s:g}"]


class _Worker(msgspec.Struct):
    state: str


class _Workers(msgspec.Struct):
    """What of the gateway's `GET /workers` counts here."""

    workers: list[_Worker]
