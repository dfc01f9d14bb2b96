"""What one output item of a worker of ours costs the gateway besides its system calls.

Steps of a worker come in as the reader of HTTP/2 hands them over, in bytes, an item for each
stream; what is written to the clients is dropped. Microseconds of CPU an item: the median of many
steps, and the 10th percentile.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import cast

from gateway_request import LIMITED, Wire

from attached_gateway import join_attached
from radixgate.clock import SystemClock
from radixgate.gateway.choice.own_policy import own_policy
from radixgate.gateway.entry.http_front import FrontConnection
from radixgate.gateway.gateway import Gateway
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.upstream.attach import AttachStream
from radixgate.policies.registry import PolicyConfigs
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.step_tokens import with_tokens

STEPS, MODEL, WORKER = 400, "toy", "w0"


class SilentLine:
    """A `Line` that is open and brings nothing by itself."""

    unsent_bytes = 0

    def __init__(self, on_message: Callable[[bytes], None]) -> None:
        self.on_message = on_message

    def send(self, message: bytes) -> None:
        pass

    async def run(self) -> str:
        return await asyncio.get_running_loop().create_future()


def attached(gateway: Gateway, lines: list[SilentLine]) -> AttachStream:
    """The one worker of the fleet, its stream open; its line is added to `lines`."""

    def dial(on_message: Callable[[bytes], None]) -> SilentLine:
        lines.append(SilentLine(on_message))
        return lines[-1]

    stream = AttachStream(dial, "bench", WORKER, SystemClock())
    join_attached(gateway, stream, WORKER, context_length=1_000_000)
    return stream


def ask(gateway: Gateway, number: int) -> Wire:
    """A streamed chat on a connection of its own."""
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": f"hello {number}"}],
        "max_tokens": 100_000,
        "stream": True,
    }
    raw = json.dumps(body).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer bench\r\n"
    client = Wire()
    assert gateway.door is not None
    front = FrontConnection(gateway.door.front)
    front.connection_made(cast(asyncio.Transport, client))
    front.data_received(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(raw), raw))
    return client


def step(streams: int, number: int, *, columns: bool) -> bytes:
    """One token of each stream, as the worker's message has it."""
    items = [
        pb.Item(handle=handle, token_ids=[100 + (handle + number) % 26], text=" word")
        for handle in range(1, streams + 1)
    ]
    batch = pb.StepBatch(step=number, items=items)
    return (with_tokens(batch) if columns else batch).SerializeToString()


async def measure(streams: int, *, columns: bool) -> tuple[float, float]:
    clock, rng = SystemClock(), random.Random(0)
    config = GatewayConfig(port=0)
    own = own_policy(config.policy, PolicyConfigs(), clock, rng)
    gateway = Gateway(config, own, clock, rng, LIMITED)
    await gateway.start()
    lines: list[SilentLine] = []
    stream = attached(gateway, lines)
    running = asyncio.create_task(stream.run())
    await asyncio.sleep(0)
    clients = [ask(gateway, number) for number in range(streams)]
    while stream.in_flight < streams:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert gateway.door is not None
    turn = gateway.door.front.turn
    laps = []
    for number in range(STEPS):
        # A stream's first item tells more than its token.
        message = step(streams, number, columns=columns and number > 0)
        began = time.thread_time()
        lines[0].on_message(message)
        for client in clients:  # as at the end of the loop's turn, which does not end here
            turn.send(cast(asyncio.Transport, client))
        laps.append((time.thread_time() - began) * 1e6 / streams)
    assert all(client.writes == STEPS for client in clients)
    running.cancel()
    await gateway.stop()
    return statistics.median(laps), statistics.quantiles(laps, n=10)[0]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", default="8,64,256", help="how many at once")
    parser.add_argument("--items", action="store_true", help="a message each, not columns")
    options = parser.parse_args()
    for streams in map(int, options.streams.split(",")):
        median, low = await measure(streams, columns=not options.items)
        print(f"{streams:>4} streams   p50 {median:>6.1f} us   p10 {low:>6.1f} us")


if __name__ == "__main__":
    asyncio.run(main())
