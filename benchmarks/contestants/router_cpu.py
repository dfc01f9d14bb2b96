"""CPU a request of several routers in one run, in turns, before two scripted HTTP workers.

    python benchmarks/contestants/router_cpu.py \\
        'ours=radixgate gateway --port {port} --worker-urls {workers} --policy kv_cost' \\
        'other=other-router --port {port} --worker-urls {workers}'

`{workers}` becomes the workers' URLs, separated by spaces. A router is measured by the user and
system time of its process and its children. Workers and load are in Python and slower than a router
under test, which does not matter to its CPU a request. Everything is on 127.0.0.1.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import uvloop

WORKER_PORTS, FIRST_PORT = (19601, 19602), 19610
TICK_MS = 1_000 / os.sysconf("SC_CLK_TCK")
READY_WITHIN_S = 60.0
CHARACTERS = {"small": 45, "big": 98_000}
MODELS = b'{"object":"list","data":[{"id":"mock","object":"model"}]}'
ANSWER = (
    b'{"id":"chatcmpl-0123456789abcdef","object":"chat.completion","created":1700000000,'
    b'"model":"mock","choices":[{"index":0,"message":{"role":"assistant","content":"The quick '
    b'brown fox jumps over the lazy dog."},"finish_reason":"stop"}],"usage":{"prompt_tokens":64,'
    b'"completion_tokens":20,"total_tokens":84}}'
)
LENGTH = re.compile(rb"(?i)content-length: *(\d+)")


class Whole:
    """Cuts what arrives into messages that have a length."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._missing = -1  # bytes; -1: the head is not whole

    def take(self, data: bytes) -> bytes | None:
        """The message that `data` completes; nothing may come behind it."""
        self._parts.append(data)
        if self._missing < 0:
            got = b"".join(self._parts)
            head, blank, body = got.partition(b"\r\n\r\n")
            if not blank:
                return None
            length = LENGTH.search(head)
            self._missing = (int(length[1]) if length else 0) - len(body)
        else:
            self._missing -= len(data)
        if self._missing > 0:
            return None
        whole = b"".join(self._parts)
        self._parts, self._missing = [], -1
        return whole


class Worker(asyncio.Protocol):
    """One connection to a scripted worker."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._requests = Whole()

    def data_received(self, data: bytes) -> None:
        request = self._requests.take(data)
        if request is None:
            return
        body = ANSWER if request.startswith(b"POST") else MODELS
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % len(body) + body)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Worker, "127.0.0.1", port)
    await server.serve_forever()


class Load(asyncio.Protocol):
    """One connection that asks again as soon as it is answered, until the time is over."""

    def __init__(self, bodies: Sequence[bytes], counts: dict[str, int], until: float) -> None:
        self._bodies = bodies
        self._counts = counts
        self._until = until
        self._answers = Whole()
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def _ask(self) -> None:
        self._counts["asked"] += 1
        number = self._counts["asked"]
        body = self._bodies[number % len(self._bodies)].replace(b"@" * 12, b"%012d" % number)
        head = (
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        )
        self._transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))

    def data_received(self, data: bytes) -> None:
        answer = self._answers.take(data)
        if answer is None:
            return
        self._counts["ok" if answer.startswith(b"HTTP/1.1 200") else "wrong"] += 1
        if time.monotonic() < self._until:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set_result(None)


def bodies(characters: int) -> list[bytes]:
    words = random.Random(7)
    texts = [
        " ".join(f"w{words.randrange(10_000)}" for _ in range(characters // 6)) for _ in range(8)
    ]
    return [
        json.dumps(
            {
                "model": "mock",
                "messages": [{"role": "user", "content": f"[{n}] {text} {'@' * 12}"}],
                "max_tokens": 64,
            }
        ).encode()
        for n, text in enumerate(texts)
    ]


async def load(port: int, kind: str, seconds: float) -> dict[str, int]:
    counts = {"asked": 0, "ok": 0, "wrong": 0}
    until, asked, loop = (
        time.monotonic() + seconds,
        bodies(CHARACTERS[kind]),
        asyncio.get_event_loop(),
    )
    made = [
        await loop.create_connection(lambda: Load(asked, counts, until), "127.0.0.1", port)
        for _ in range(32)
    ]
    await asyncio.gather(*(protocol.over for _, protocol in made))
    return counts


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


def cpu_ms(pids: Sequence[int]) -> float:
    stats = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) * TICK_MS


async def ready(port: int) -> None:
    end = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < end:
        try:
            if (await load(port, "small", 0.0))["wrong"] == 0:
                return
        except OSError:
            pass
        await asyncio.sleep(0.3)
    raise SystemExit(f"nobody answers at port {port} within {READY_WITHIN_S:g} s")


async def measure(
    routers: dict[str, int], pids: dict[str, int], rounds: int, slot_s: float
) -> None:
    for port in routers.values():
        await ready(port)
    for kind in CHARACTERS:
        costs: dict[str, list[float]] = {name: [] for name in routers}
        wrong = dict.fromkeys(routers, 0)
        for _ in range(rounds):
            for name, port in routers.items():
                before = cpu_ms(family(pids[name]))
                counts = await load(port, kind, slot_s)
                spent = cpu_ms(family(pids[name])) - before
                costs[name].append(spent / max(1, counts["ok"]))
                wrong[name] += counts["wrong"]
        last = statistics.median(costs[list(routers)[-1]])
        for name, found in costs.items():
            cost = statistics.median(found)
            ratio = cost / last if last else 0.0
            print(
                f"{kind:<6} {name:<20} {cost:.3f} ms  {ratio:.2f} of the last  wrong {wrong[name]}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("routers", nargs="*", metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each router and round")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        uvloop.run(serve(options.serve))
    urls = " ".join(f"http://127.0.0.1:{port}" for port in WORKER_PORTS)
    children = [
        subprocess.Popen([sys.executable, __file__, "--serve", str(port)]) for port in WORKER_PORTS
    ]
    ports, pids = {}, {}
    try:
        for number, spec in enumerate(options.routers):
            name, _, command = spec.partition("=")
            ports[name] = FIRST_PORT + number
            words = shlex.split(command.format(port=ports[name], workers=urls))
            children.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
            pids[name] = children[-1].pid
        uvloop.run(measure(ports, pids, options.rounds, options.seconds))
    finally:
        for child in reversed(children):
            child.terminate()
        for child in children:
            child.wait(15)


if __name__ == "__main__":
    main()
