"""The gateway as a process: its ready line, how it drains, and what ends it."""

import asyncio
import re
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from radixgate.ready_lines import GATEWAY_READY
from raw_client import RawClient, ask, request
from scripted_worker import Await, Hang, ScriptedWorker, events, sse_end, sse_head
from small_gateway import CHAT, chat_body
from until import PATIENCE_S, until

pytestmark = pytest.mark.slow


class Process:
    """A started gateway."""

    def __init__(self, process: asyncio.subprocess.Process, line: str) -> None:
        self.process = process
        self.line = line
        ready = re.match(GATEWAY_READY, line)
        assert ready, line
        self.port = int(ready["url"].rsplit(":", 1)[1])

    async def has_ready_workers(self, count: int) -> None:
        readiness = request("/readiness", method="GET")
        async with asyncio.timeout(PATIENCE_S):
            while (await ask(self.port, readiness)).json["ready_workers"] != count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def readiness(port: int) -> tuple[int, str, str | None]:
    """Status, what it says, and whether its connection is kept."""
    reply = await ask(port, request("/readiness", method="GET"))
    return reply.status, reply.json["status"], reply.header("connection")


@asynccontextmanager
async def gateway(*flags: str, by: Sequence[str] = ()) -> AsyncIterator[Process]:
    """`by`: what its command line is given to."""
    process = await asyncio.create_subprocess_exec(
        *(*by, sys.executable, "-m", "radixgate.cli", "gateway", "--port", "0", *flags),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            line = (await process.stdout.readline()).decode()
        yield Process(process, line)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


# No test waits until a grace is over: it would see another end than the one that it is about.
LONG_GRACE = ("--shutdown-grace-period-secs", "600")


async def until_draining(port: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await readiness(port))[0] == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def exit_code(served: Process) -> int:
    async with asyncio.timeout(PATIENCE_S):
        return await served.process.wait()


async def test_sigterm_lets_a_running_answer_end_and_exits_0() -> None:
    flags, word = LONG_GRACE, asyncio.Event()
    async with ScriptedWorker() as worker, gateway("--worker-urls", worker.url, *flags) as served:
        assert "policy=kv_cost" in served.line
        await served.has_ready_workers(1)
        worker.script = lambda request: [
            *sse_head(),
            *events(*"abcde"),
            Await(word),
            *events(*"fghij"),
            *sse_end(),
        ]
        async with RawClient(served.port) as idle, RawClient(served.port) as client:
            client.send(request(CHAT, chat_body(stream=True)))
            await until(lambda: len(worker.requests) == 1)
            served.process.send_signal(signal.SIGTERM)
            assert await idle.ended()
            assert await readiness(served.port) == (503, "draining", "close")
            assert (await ask(served.port, request("/liveness", method="GET"))).status == 200
            late = await ask(served.port, request(CHAT, chat_body()))
            told = (late.status, late.header("retry-after"), late.header("connection"))
            assert told == (503, "1", "close")
            word.set()
            reply = await client.answer()
            assert len(reply.events) == 12
            assert await client.ended()
        assert await exit_code(served) == 0
        assert len(worker.requests) == 1
        with pytest.raises(ConnectionError):
            await ask(served.port, request("/health", method="GET"))


async def test_it_ends_with_the_last_answer_whoever_came_too_late() -> None:
    flags, word = LONG_GRACE, asyncio.Event()
    async with ScriptedWorker() as worker, gateway("--worker-urls", worker.url, *flags) as served:
        await served.has_ready_workers(1)
        worker.script = lambda request: [*sse_head(), *events(*"abcde"), Await(word), *sse_end()]
        async with RawClient(served.port) as idle, RawClient(served.port) as client:
            client.send(request(CHAT, chat_body(stream=True)))
            await until(lambda: len(worker.requests) == 1)
            served.process.send_signal(signal.SIGTERM)
            assert await idle.ended()
            async with RawClient(served.port) as silent, RawClient(served.port) as headless:
                silent.send(request(CHAT, chat_body())[:-5])
                headless.send(b"POST ")
                word.set()
                assert len((await client.answer()).events) == 7
                assert await exit_code(served) == 0


async def test_requests_are_taken_for_a_while_after_sigterm_and_readiness_says_draining() -> None:
    flags = ("--shutdown-accept-secs", "4", *LONG_GRACE)
    async with ScriptedWorker() as worker, gateway("--worker-urls", worker.url, *flags) as served:
        await served.has_ready_workers(1)
        async with RawClient(served.port) as kept, RawClient(served.port) as idle:
            first = await kept.ask(request(CHAT, chat_body()))
            assert (first.status, first.header("connection")) == (200, None)
            served.process.send_signal(signal.SIGTERM)
            await until_draining(served.port)
            assert await readiness(served.port) == (503, "draining", "close")
            for answer in (
                await kept.ask(request(CHAT, chat_body())),
                await ask(served.port, request(CHAT, chat_body())),
            ):
                assert (answer.status, answer.header("connection")) == (200, "close")
            assert await kept.ended()
            assert served.process.returncode is None
            async with asyncio.timeout(PATIENCE_S):
                assert await idle.ended()
        assert await exit_code(served) == 0


async def idle_end_s() -> float:
    """How long a gateway over nothing takes from SIGTERM to its exit, on this machine now."""
    async with gateway() as served:
        began = time.perf_counter()
        served.process.send_signal(signal.SIGTERM)
        assert await exit_code(served) == 0
        return time.perf_counter() - began


@pytest.mark.parametrize("accept_s", ["0", "600"])
async def test_a_second_signal_ends_within_a_second(accept_s: str) -> None:
    """A second more than twice what a gateway takes that has nothing to do."""
    yardstick_s = await idle_end_s()
    flags = ("--shutdown-accept-secs", accept_s, *LONG_GRACE)
    async with ScriptedWorker() as worker, gateway("--worker-urls", worker.url, *flags) as served:
        await served.has_ready_workers(1)
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        async with RawClient(served.port) as idle, RawClient(served.port) as client:
            client.send(request(CHAT, chat_body(stream=True)))
            await until(lambda: len(worker.requests) == 1)
            served.process.send_signal(signal.SIGTERM)
            await until_draining(served.port)
            assert served.process.returncode is None
            began = time.perf_counter()
            served.process.send_signal(signal.SIGINT)
            assert await exit_code(served) == 0
            assert time.perf_counter() - began < 2 * yardstick_s + 1.0
            assert await idle.ended()


async def test_it_may_open_as_many_files_as_the_system_lets_it() -> None:
    """A login has 1024, and a stream takes two: its client's connection and its worker's."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    async with gateway(by=("sh", "-c", 'ulimit -Sn 256 && exec "$@"', "sh")) as served:
        pid = served.process.pid
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (hard, hard)


async def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    async with ScriptedWorker() as worker:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "radixgate.cli", "gateway", "--port", str(worker.port)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert (process.returncode, out) == (2, b"")
        assert f"cannot listen on 127.0.0.1:{worker.port}" in err.decode()
        assert b"Traceback" not in err


async def test_a_worker_s_url_that_is_none_is_said_in_one_line() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "radixgate.cli", "gateway", "--port", "0", "--worker-urls", "x:1"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode != 0
    assert out == b""
    assert b"is expected" in err
    assert b"Traceback" not in err
