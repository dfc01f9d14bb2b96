"""What one request costs the gateway besides its system calls: front door, exchange, worker client.

Real connections without sockets: bytes go in as the event loop would bring them, so many requests a
turn, and what is written is dropped. Microseconds of CPU a request, the median of many batches.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Sequence
from typing import cast

from radixgate.clock import Clock, SystemClock
from radixgate.fleet.fleet import MirrorKey, WorkerIdentity, WorkerState
from radixgate.gateway.choice.own_policy import own_policy
from radixgate.gateway.entry.http_front import FrontConnection
from radixgate.gateway.gateway import Gateway
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.rules import NO_RULES, GatewayRules
from radixgate.gateway.upstream.connection import UpstreamConnection
from radixgate.gateway.upstream.pool import UpstreamPool
from radixgate.gateway.workers.worker_http import HttpWorkerClient
from radixgate.policies.registry import PolicyConfigs

BATCH, BATCHES, WORKERS = 200, 60, 2
LIMITED = GatewayRules(
    access=AccessConfig(api_key="bench"),
    limits=LimitsConfig(max_concurrent_requests=10_000, tenant_requests_per_minute=1e9),
)
ANSWER = json.dumps(
    {
        "id": "chatcmpl-0123456789abcdef",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "The fox. " * 9}}],
        "usage": {"prompt_tokens": 64, "completion_tokens": 20, "total_tokens": 84},
    }
).encode()
WHOLE = (
    b"HTTP/1.1 200 OK\r\ndate: Sun, 29 Nov 2026 00:00:00 GMT\r\nserver: uvicorn\r\n"
    b"content-length: %d\r\ncontent-type: application/json\r\n\r\n%b" % (len(ANSWER), ANSWER)
)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


EVENTS = [
    b'data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk",'
    b'"created":1700000000,"model":"mock","choices":[{"index":0,"delta":{"content":"w%d"},'
    b'"logprobs":null,"finish_reason":%b}]}\n\n' % (number, b"null" if number < 63 else b'"stop"')
    for number in range(64)
]
# As a burst arrives: all of it in one piece, an event a chunk.
STREAM = (
    b"HTTP/1.1 200 OK\r\ndate: Sun, 29 Nov 2026 00:00:00 GMT\r\nserver: uvicorn\r\n"
    b"content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
    b"%b%b0\r\n\r\n" % (b"".join(map(_chunk, EVENTS)), _chunk(b"data: [DONE]\n\n"))
)


class Wire:
    """A transport that keeps the number of its writes and nothing else."""

    def __init__(self) -> None:
        self.writes = 0

    def write(self, data: bytes) -> None:
        self.writes += 1

    def writelines(self, parts: object) -> None:
        self.writes += 1

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> None:
        return None

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Bench:
    """Connections of clients, the gateway's core, and as many kept connections to each worker."""

    def __init__(self, gateway: Gateway, clock: Clock, together: int = 1) -> None:
        """The gateway has started, and has no workers yet. `together`: the requests of a turn."""
        path = gateway.headquarters.path
        clients = cast(dict[str, HttpWorkerClient], gateway.workers.clients)
        self._upstream: list[UpstreamConnection] = []
        for number in range(WORKERS):
            pool = UpstreamPool(
                "127.0.0.1",
                9000 + number,
                clock=clock,
                deadlines=path.deadlines,
                turn=path.turn,
                max_idle=2 * together,
                idle_timeout_s=60.0,
            )
            clients[f"w{number}"] = HttpWorkerClient(pool, 5.0)
            for _ in range(together):
                connection = UpstreamConnection(pool)
                connection.connection_made(cast(asyncio.Transport, Wire()))
                pool.release(connection)
                self._upstream.append(connection)
            gateway.fleet.admit(_identity(f"w{number}"))
            gateway.fleet.set_state(f"w{number}", WorkerState.READY)
        assert gateway.door is not None
        self._turn = path.turn
        self.clients = [Wire() for _ in range(together)]
        self._fronts = [FrontConnection(gateway.door.front) for _ in self.clients]
        for front, client in zip(self._fronts, self.clients, strict=True):
            front.connection_made(cast(asyncio.Transport, client))

    def ask(self, requests: Sequence[bytes], answer: bytes) -> None:
        """One turn of requests, then one of answers through whichever connections took them."""
        for front, request in zip(self._fronts, requests, strict=False):
            front.data_received(request)
        self._turn.end()
        for connection in self._upstream:
            if connection._listener is not None:
                connection.data_received(answer)
        self._turn.end()


def request_of(characters: int, number: int, *, stream: bool) -> bytes:
    """A chat whose last words differ each time; eight prompts take turns."""
    words = random.Random(number % 8)
    text = " ".join(f"w{words.randrange(10_000)}" for _ in range(characters // 6))
    body = {
        "model": "mock",
        "messages": [{"role": "user", "content": f"{text} {number:012d}"}],
        "max_tokens": 64,
        "temperature": 0.7,
        "stream": stream,
    }
    raw = json.dumps(body, separators=(",", ":")).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer bench\r\n"
    head += b"content-type: application/json\r\n"
    return b"%bcontent-length: %d\r\n\r\n%b" % (head, len(raw), raw)


def measure(bench: Bench, requests: list[bytes], answer: bytes) -> tuple[float, float]:
    """Median and 10th percentile of the batches, microseconds a request."""
    laps, together = [], len(bench.clients)
    turns = [requests[begin : begin + together] for begin in range(0, len(requests), together)]
    for _ in range(BATCHES):
        began = time.thread_time()
        for turn in turns:
            bench.ask(turn, answer)
        laps.append((time.thread_time() - began) * 1e6 / len(requests))
    assert sum(client.writes for client in bench.clients) == BATCHES * len(requests)
    return statistics.median(laps), statistics.quantiles(laps, n=10)[0]


def _identity(name: str) -> WorkerIdentity:
    return WorkerIdentity(
        id=name,
        url=f"http://{name}",
        kind="http",
        model="mock",
        mirror=MirrorKey("mock", "bytes", 0),
        capacity_tokens=100_000,
        weights_id="mock",
        instance_id="",
        reports_kv=False,
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", default="round_robin,cache_aware,kv_cost")
    parser.add_argument("--limits", action="store_true", help="a key, and limits nobody reaches")
    parser.add_argument(
        "--together", type=int, default=8, help="requests that the loop reads in one turn"
    )
    options = parser.parse_args()
    rules = LIMITED if options.limits else NO_RULES
    for policy in options.policies.split(","):
        for name, characters, answer in (
            ("small", 50, WHOLE),
            ("big", 100_000, WHOLE),
            ("burst", 50, STREAM),
        ):
            clock, rng = SystemClock(), random.Random(0)
            config = GatewayConfig(policy=policy, port=0)
            own = own_policy(policy, PolicyConfigs(), clock, rng)
            gateway = Gateway(config, own, clock, rng, rules)
            await gateway.start()
            requests = [
                request_of(characters, number, stream=answer is STREAM) for number in range(BATCH)
            ]
            median, low = measure(Bench(gateway, clock, options.together), requests, answer)
            print(f"{name:<6} {policy:<12} p50 {median:>6.1f} us   p10 {low:>6.1f} us")
            await gateway.stop()


if __name__ == "__main__":
    asyncio.run(main())
