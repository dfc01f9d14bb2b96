"""What the gateway adds to one request at a time, over HTTP workers that answer at once.

Requests go in turns to the worker itself and through the gateway, over one kept connection each.
Everything is on 127.0.0.1.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from typing import cast

import uvloop

MODELS = b'{"object":"list","data":[{"id":"mock","object":"model"}]}'
MESSAGE = {"role": "assistant", "content": "The quick brown fox jumps over the lazy dog."}
ANSWER = json.dumps(
    {
        "id": "chatcmpl-0123456789abcdef",
        "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 64, "completion_tokens": 20, "total_tokens": 84},
    }
).encode()


def _whole(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


class Worker(asyncio.Protocol):
    """Answers each piece that comes: requests here are small, and one at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(_whole(ANSWER if data.startswith(b"POST") else MODELS))


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Worker, "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


class Asker:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, number: int) -> float:
        """Seconds until the whole answer is there. Raises if it is not the worker's."""
        messages = [{"role": "user", "content": f"Say something short, please. {number:012d}"}]
        body = json.dumps({"model": "mock", "messages": messages, "max_tokens": 64}).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
        request = head % len(body) + body
        began = time.perf_counter()
        self._socket.sendall(request)
        answer = b""
        while not answer.endswith(ANSWER):
            piece = self._socket.recv(65_536)
            if not piece or (answer and not answer.startswith(b"HTTP/1.1 200")):
                raise SystemExit(f"no answer: {answer[:200]!r}")
            answer += piece
        return time.perf_counter() - began


def started(*words: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=3_000)
    parser.add_argument("--policy", default="kv_cost")
    parser.add_argument(
        "--ports", type=int, nargs=2, default=(19501, 19500), help="of the worker and the gateway"
    )
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve(options.serve))
    worker_port, gateway_port = options.ports
    worker = started(sys.executable, __file__, "--serve", str(worker_port))
    words = ["gateway", "--port", str(gateway_port), "--policy", options.policy]
    urls = ["--worker-urls", f"http://127.0.0.1:{worker_port}"]
    gateway = started(sys.executable, "-m", "radixgate.cli", *words, *urls)
    try:
        time.sleep(2.0)
        direct, through = Asker(worker_port), Asker(gateway_port)
        waits: dict[str, list[float]] = {"worker alone": [], "gateway": []}
        for number in range(options.requests):
            waits["worker alone"].append(direct.ask(number) * 1e3)
            waits["gateway"].append(through.ask(number) * 1e3)
    finally:
        for child in (gateway, worker):
            child.terminate()
            child.wait(10)
    for name, taken in waits.items():
        late = statistics.quantiles(taken, n=100)[98]
        print(f"{name:<14} p50 {statistics.median(taken):.3f} ms, p99 {late:.3f} ms")
    added = statistics.median(waits["gateway"]) - statistics.median(waits["worker alone"])
    print(f"added at the median: {added:.3f} ms (load {os.getloadavg()[0]:.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
