"""Many slow streams through one gateway process: is a byte lost or out of order, and how late?

A scripted HTTP worker, in a process of its own, sends every stream an event each 1/RATE s; an event
carries the stream's name, a running number and the time it was sent. The client reads all streams,
checks both, and takes the delay. The same once more without the gateway: the difference is what the
gateway adds. Everything is on 127.0.0.1.
"""

import argparse
import asyncio
import json
import re
import resource
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import uvloop

TICK_S = 0.01
MODELS = b'{"object":"list","data":[{"id":"mock","object":"model"}]}'
EVENT = re.compile(rb'"content":"(\d+) (\d+) (\d+)"')


@dataclass(slots=True, eq=False)
class Stream:
    """A stream at the worker."""

    transport: asyncio.Transport
    name: bytes
    left: int
    due: float
    sent: int = 0


class Worker(asyncio.Protocol):
    """One connection: a request, then its stream."""

    def __init__(self, streams: set[Stream], rate: float) -> None:
        self._streams = streams
        self._rate = rate
        self._got = b""
        self._stream: Stream | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._stream is not None:
            self._streams.discard(self._stream)

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, blank, body = self._got.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if not blank or len(body) < (int(length[1]) if length else 0):
            return
        self._got = b""
        if not head.startswith(b"POST"):
            answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            self._transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (answer, len(MODELS), MODELS))
            return
        asked = json.loads(body)
        name = asked["messages"][0]["content"].encode()
        # Streams begin together; spread over the gap as real ones are.
        due = time.monotonic() + int(name) % 97 / 97 / self._rate
        self._stream = Stream(self._transport, name, asked["max_tokens"], due)
        self._streams.add(self._stream)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        self._transport.write(head + b"transfer-encoding: chunked\r\n\r\n")


def _send(stream: Stream) -> None:
    stream.left -= 1
    now_us = time.monotonic_ns() // 1_000
    finish = b"null" if stream.left else b'"length"'
    event = (
        b'data: {"choices":[{"index":0,"delta":{"content":"%b %d %d"},"finish_reason":%b}]}\n\n'
        % (stream.name, stream.sent, now_us, finish)
    )
    if not stream.left:
        event += b"data: [DONE]\n\n"
    stream.sent += 1
    tail = b"" if stream.left else b"0\r\n\r\n"
    stream.transport.write(b"%x\r\n%b\r\n%b" % (len(event), event, tail))


async def serve(port: int, rate: float) -> None:
    streams: set[Stream] = set()
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: Worker(streams, rate), "127.0.0.1", port, backlog=4_096)
    print("ready", flush=True)
    while True:
        await asyncio.sleep(TICK_S)
        now = time.monotonic()
        for stream in [one for one in streams if one.due <= now]:
            stream.due += 1 / rate
            _send(stream)
            if not stream.left:
                streams.discard(stream)


@dataclass(slots=True)
class Seen:
    """What came of all streams."""

    delays_us: "array[int]" = field(default_factory=lambda: array("q"))
    whole: int = 0
    wrong: list[str] = field(default_factory=list)


class Reader(asyncio.Protocol):
    """One stream at the client."""

    def __init__(self, name: int, events: int, seen: Seen, over: asyncio.Semaphore) -> None:
        self._name = name
        self._events = events
        self._seen = seen
        self._over = over
        self._next = 0
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        message = {"role": "user", "content": str(self._name)}
        asked = {"model": "mock", "messages": [message], "max_tokens": self._events, "stream": True}
        body = json.dumps(asked).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % len(body) + body)

    def data_received(self, data: bytes) -> None:
        now_us = time.monotonic_ns() // 1_000
        text = self._rest + data
        end = 0
        for match in EVENT.finditer(text):
            name, number, sent_us = map(int, match.groups())
            if name != self._name or number != self._next:
                self._seen.wrong.append(f"{self._name}: {name} {number}, not {self._next}")
            self._next += 1
            self._seen.delays_us.append(now_us - sent_us)
            end = match.end()
        self._rest = text[end:]
        if self._rest.endswith(b"[DONE]\n\n\r\n0\r\n\r\n"):
            self._seen.whole += self._next == self._events
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over.release()


async def run(port: int, streams: int, events: int) -> Seen:
    """All streams to their end."""
    seen, over = Seen(), asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()

    def reader(name: int) -> Reader:
        return Reader(name, events, seen, over)

    for name in range(streams):
        await loop.create_connection(lambda name=name: reader(name), "127.0.0.1", port)  # type: ignore[misc]
    for _ in range(streams):
        await over.acquire()
    return seen


def report(title: str, seen: Seen, expected: int) -> tuple[float, float]:
    delays = sorted(seen.delays_us)
    middle, late = (delays[int(len(delays) * share)] / 1e3 for share in (0.5, 0.99))
    print(
        f"{title:<13} whole {seen.whole}, events {len(delays)} of {expected},"
        f" wrong {len(seen.wrong)}, delay p50 {middle:.2f} ms, p99 {late:.2f} ms"
    )
    for wrong in seen.wrong[:3]:
        print("   ", wrong)
    return middle, late


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the gateway is gone")


async def watch_memory(pid: int, samples: list[float]) -> None:
    while True:
        await asyncio.sleep(1.0)
        samples.append(rss_mb(pid))


async def measure(
    streams: int, rate: float, seconds: float, pid: int, ports: Sequence[int]
) -> bool:
    """True if nothing was lost."""
    events = int(rate * seconds)
    samples: list[float] = []
    watching = asyncio.create_task(watch_memory(pid, samples))
    through = await run(ports[1], streams, events)
    watching.cancel()
    direct = await run(ports[0], streams, int(rate * min(10.0, seconds)))
    middle, late = report("gateway", through, streams * events)
    base_middle, base_late = report(
        "worker alone", direct, streams * int(rate * min(10.0, seconds))
    )
    print(f"added: p50 {middle - base_middle:.2f} ms, p99 {late - base_late:.2f} ms")
    third = max(1, len(samples) // 3)
    first, last = max(samples[third : 2 * third]), max(samples[-third:])
    print(f"gateway memory: {first:.1f} MB in the second third, {last:.1f} MB in the last")
    return through.whole == streams and not through.wrong


def started(*words: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--rate", type=float, default=5.0, help="events a second, each stream")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument(
        "--ports", type=int, nargs=2, default=(19401, 19400), help="of the worker and the gateway"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if options.serve:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        uvloop.run(serve(options.ports[0], options.rate))
    me, python = __file__, sys.executable
    worker = started(
        python, me, "--serve", "--rate", str(options.rate), "--ports", *map(str, options.ports)
    )
    words = ["gateway", "--port", str(options.ports[1]), "--worker-urls"]
    gateway = started(python, "-m", "radixgate.cli", *words, f"http://127.0.0.1:{options.ports[0]}")
    try:
        time.sleep(2.0)
        sound = uvloop.run(
            measure(options.streams, options.rate, options.seconds, gateway.pid, options.ports)
        )
    finally:
        for child in (gateway, worker):
            child.terminate()
            child.wait(10)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
