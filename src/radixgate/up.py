"""`radixgate up`: workers and a gateway as children, from the first line to the last drain."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence

from radixgate.errors import ProcessFailed
from radixgate.processes import Child, how_it_ended
from radixgate.ready_lines import GATEWAY_READY, WORKER_READY
from radixgate.up_config import UpConfig

# Beyond its own grace a child gets this long to write its last line.
_LAST_LINE_S = 5.0

_TO_TRY = """
Try, in another terminal:

  curl -N {url}/v1/chat/completions -H 'content-type: application/json' \\
    -d '{{"model": "{model}", "stream": true, "max_tokens": 64,
         "messages": [{{"role": "user", "content": "What is the capital of France?"}}]}}'
  curl {url}/workers
  {program} bench --base-url {url} --dataset-name generated-shared-prefix \\
    --gsp-num-groups 4 --gsp-prompts-per-group 5 --gsp-system-prompt-len 256 \\
    --gsp-question-len 32 --gsp-output-len 16 --max-concurrency 4

Ctrl-C ends it: the gateway finishes what it has, then the workers stop. A second one kills.
"""


def run_up(config: UpConfig) -> int:
    """Serve until Ctrl-C or SIGTERM (then 0), or until nothing is left to serve (then 1)."""
    return asyncio.run(serve(config, (sys.executable, "-m", "radixgate.cli"), _say))


async def serve(config: UpConfig, program: Sequence[str], say: Callable[[str], None]) -> int:
    """What `run_up` does, with the program that `worker` and `gateway` are commands of."""
    household = Household(config, program, say)
    with _signals(household.kill) as stopped:
        running = asyncio.create_task(household.run())
        try:
            await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if stopped.done():
                say("stopping: the gateway first, then the workers")
                return 0
            await running
        except ProcessFailed as failed:
            # Its last lines were shown as they came.
            say(f"stopping: {failed.message.splitlines()[0]}")
        finally:
            running.cancel()
            await household.stop()
    return 1


class Household:
    """One gateway and its workers. Whatever happens, `stop` leaves none of them behind."""

    def __init__(
        self, config: UpConfig, program: Sequence[str], say: Callable[[str], None]
    ) -> None:
        self._config = config
        self._program = tuple(program)
        self._say = say
        self._workers: list[Child] = []
        self._gateway: Child | None = None

    async def run(self) -> None:
        """Start everything, then return when the gateway or the last worker has ended.

        Raises ProcessFailed, with the last lines, if one of them ends before it is ready.
        """
        for number in range(1, self._config.workers + 1):
            self._workers.append(await self._start(f"worker {number}", self._worker_flags()))
        matches = await asyncio.gather(
            *(child.wait_ready(self._config.start_timeout_s) for child in self._workers)
        )
        gateway = await self._start(
            "gateway", self._gateway_flags([f"grpc://{match['grpc']}" for match in matches])
        )
        self._gateway = gateway
        url = (await gateway.wait_ready(self._config.start_timeout_s))["url"]
        self._say(_TO_TRY.format(url=url, model=matches[0]["model"], program=_program_name()))
        await self._watch(gateway)

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

    async def _watch(self, gateway: Child) -> None:
        left = {asyncio.create_task(child.wait()): child for child in self._children()}
        try:
            while gateway in left.values() and len(left) > 1:
                done, _ = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                for end in done:
                    self._say(f"{left.pop(end).name} {how_it_ended(end.result())}")
        finally:
            for end in left:
                end.cancel()
        gone = "the gateway is gone" if gateway.exit_code is not None else "no worker is left"
        self._say(f"stopping: {gone}")

    async def _stop(self, child: Child, grace_s: float) -> None:
        if child.exit_code is None and (code := await child.stop(grace_s)) != 0:
            self._say(f"{child.name} {how_it_ended(code)}")

    def _children(self) -> list[Child]:
        return [*self._workers, *([self._gateway] if self._gateway else [])]

    async def _start(self, name: str, flags: Sequence[str]) -> Child:
        ready = GATEWAY_READY if flags[0] == "gateway" else WORKER_READY
        return await Child.start(
            name,
            (*self._program, *flags),
            ready=ready,
            on_line=lambda line: self._say(f"[{name}] {line}"),
        )

    def _worker_flags(self) -> list[str]:
        config = self._config
        threads = config.threads or max(1, (os.cpu_count() or 1) // config.workers)
        flags = ["worker", "--model-path", config.model_path, "--port", "0", "--grpc-port", "0"]
        flags += ["--page-size", str(config.page_size), "--threads", str(threads)]
        if config.max_total_tokens is not None:
            flags += ["--max-total-tokens", str(config.max_total_tokens)]
        return [*flags, "--shutdown-grace-period-secs", f"{config.drain_s:g}"]

    def _gateway_flags(self, worker_urls: Sequence[str]) -> list[str]:
        config = self._config
        flags = ["gateway", "--worker-urls", *worker_urls, "--policy", config.policy]
        flags += ["--host", config.host, "--port", str(config.port)]
        return [*flags, "--shutdown-grace-period-secs", f"{config.drain_s:g}"]


@contextlib.contextmanager
def _signals(on_second: Callable[[], None]) -> Iterator[asyncio.Future[None]]:
    """Done at the first SIGINT or SIGTERM; another one calls `on_second`."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[None] = loop.create_future()

    def take() -> None:
        if first.done():
            on_second()
        else:
            first.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, take)
    try:
        yield first
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _program_name() -> str:
    """How the user called us, so that the command shown can be pasted."""
    return sys.argv[0] if sys.argv[0].endswith("radixgate") else "radixgate"


def _say(text: str) -> None:
    print(text, flush=True)
