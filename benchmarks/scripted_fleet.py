"""A gateway over two scripted gRPC workers, bare loops beside it, and a client of any of them."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
KEY = "bench-key"
READERS = ("http2", "grpc.aio")
Message = dict[str, str]


@dataclass(frozen=True)
class Listener:
    """A process, and where it listens."""

    pid: int
    port: int


def started(*words: str) -> "subprocess.Popen[str]":
    """A process whose first line says that it is ready."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@contextmanager
def fleet(
    policy: str, gap_ms: float, ports: Sequence[int]
) -> Iterator[tuple[Listener, dict[str, Listener]]]:
    """Workers, and a gateway and bare loops over them, these by reader. `ports`: of two workers,
    the gateway and each bare loop."""
    python, script = sys.executable, str(HERE / "scripted_grpc_worker.py")
    worker_ports, gateway_port, bare_ports = ports[:2], ports[2], ports[3:]
    children = [
        started(python, script, "--port", str(port), "--gap-ms", str(gap_ms))
        for port in worker_ports
    ]
    urls = [f"grpc://127.0.0.1:{port}" for port in worker_ports]
    limits = ["--max-concurrent-requests", "10000", "--tenant-requests-per-minute", "1e9"]
    words = ["gateway", "--port", str(gateway_port), "--policy", policy, "--api-key", KEY, *limits]
    try:
        gateway = started(python, "-m", "radixgate.cli", *words, "--worker-urls", *urls)
        children.insert(0, gateway)
        addresses = [f"127.0.0.1:{port}" for port in worker_ports]
        bare, loops = str(HERE / "bare_item_loop.py"), {}
        for reader, port in zip(READERS, bare_ports, strict=True):
            flags = ["--port", str(port), "--reader", reader, "--workers", *addresses]
            children.insert(0, started(python, bare, *flags))
            loops[reader] = Listener(children[0].pid, port)
        yield Listener(gateway.pid, gateway_port), loops
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(10)


def cpu_ms(pid: int) -> float:
    """Of a process, all its threads."""
    return time.clock_gettime_ns(~pid << 3 | 2) / 1e6  # its clock: clock_getcpuclockid(3)


class Client:
    """One connection; a request, then its whole answer."""

    async def open(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(self, messages: Sequence[Message], tokens: int, *, stream: bool) -> float:
        """Seconds to the first byte of the answer's body. Raises if it is no whole answer."""
        body = json.dumps(
            {"model": "scripted", "messages": messages, "max_tokens": tokens, "stream": stream}
        ).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %b\r\n" % (
            KEY.encode()
        )
        began = time.perf_counter()
        self._writer.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        if not stream:
            length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await self._reader.readexactly(length)
            return time.perf_counter() - began
        first_s, events = 0.0, 0
        while (size := int(await self._reader.readline(), 16)) > 0:
            piece = await self._reader.readexactly(size + 2)
            first_s = first_s or time.perf_counter() - began
            events += piece.count(b"data: ")
        await self._reader.readline()
        assert events >= tokens, f"{events} events for {tokens} tokens"
        return first_s

    def close(self) -> None:
        self._writer.close()


async def wait_until_ready(port: int) -> None:
    client = Client()
    await client.open(port)
    for _ in range(100):
        try:
            await client.ask([{"role": "user", "content": "hi"}], 1, stream=False)
            return
        except AssertionError:
            client.close()
            await asyncio.sleep(0.1)
            await client.open(port)
    raise SystemExit("the gateway did not become ready")
