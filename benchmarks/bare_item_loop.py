"""The least that an output item can cost: a worker's messages are read, the same bytes are written.

A process that answers each chat by a scripted worker, and does nothing else: no limits, metrics,
choice or rendering; every event is one and the same bytes, as long as a gateway's. It reads with
the gateway's own reader of HTTP/2, or with grpc.aio, and writes at the end of a turn of the loop,
as a gateway does. What a gateway costs more than this is its own; what this costs is the reader's
and the kernel's.
"""

import argparse
import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import count
from typing import cast

import grpc
import uvloop

from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.loop.row_writes import RowWrites, open_ring
from radixgate.gateway.upstream.grpc_endpoint import GrpcEndpoint
from radixgate.gateway.upstream.http2_silence import Pings
from radixgate.gateway.upstream.http2_stream import Http2Stream
from radixgate.proto.contract import CONTRACT_VERSION, WHOLE_CREDIT
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = (
    b'data: {"id":"chatcmpl-rg-0123456789ab-1234","object":"chat.completion.chunk",'
    b'"created":1700000000,"model":"scripted","choices":[{"index":0,"delta":{"content":" word"},'
    b'"logprobs":null,"finish_reason":null}]}\n\n'
)
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
LAST = b"0\r\n\r\n"


HELLO = pb.Command(hello=pb.Hello(gateway_id="bare", version=CONTRACT_VERSION, reads_tokens=True))
ATTACH = "/radixgate.v1.Worker/Attach"
Send = Callable[[pb.Command], None]


class Loop:
    """The streams to the workers, and by handle the connections that wait for their items."""

    def __init__(self, addresses: Sequence[str], reader: str) -> None:
        self._clients: dict[int, asyncio.Transport] = {}
        self.turn = LoopTurn(RowWrites(open_ring()))
        self._handles = count(1)
        self._tasks: list[asyncio.Task[object]] = []
        attach = self._by_grpc_aio if reader == "grpc.aio" else self._by_http2
        self._sends: list[Send] = [attach(address) for address in addresses]
        for send in self._sends:
            send(HELLO)

    def submit(self, client: asyncio.Transport, prompt_tokens: int, tokens: int) -> None:
        handle = next(self._handles)
        self._clients[handle] = client
        submit = pb.Submit(handle=handle, rid=str(handle), credit=WHOLE_CREDIT)
        submit.input_ids = bytes(4 * prompt_tokens)
        submit.sampling.max_tokens = tokens
        self._sends[handle % len(self._sends)](pb.Command(submit=submit))

    def _by_http2(self, address: str) -> Send:
        host, _, port = address.rpartition(":")
        endpoint = GrpcEndpoint(host, int(port), address, None)
        stream = Http2Stream(
            endpoint, ATTACH, lambda data: self._take(pb.StepBatch.FromString(data)), Pings()
        )
        self._tasks.append(asyncio.create_task(stream.run()))
        return lambda command: stream.send(command.SerializeToString())

    def _by_grpc_aio(self, address: str) -> Send:
        queue: asyncio.Queue[pb.Command] = asyncio.Queue()

        async def commands() -> AsyncIterator[pb.Command]:
            while True:
                yield await queue.get()

        async def read() -> None:
            async with grpc.aio.insecure_channel(address) as channel:
                stub = rpc.WorkerStub(channel)  # type: ignore[no-untyped-call]
                # A worker that ends before this process does has nothing more to say.
                with contextlib.suppress(grpc.aio.AioRpcError):
                    async for batch in stub.Attach(commands()):
                        self._take(batch)

        self._tasks.append(asyncio.create_task(read()))
        return queue.put_nowait

    def _take(self, batch: pb.StepBatch) -> None:
        clients, put = self._clients, self.turn.put
        for handle in batch.tokens.handles:
            put(clients[handle], CHUNK)
        for item in batch.items:
            put(clients[item.handle], HEAD + CHUNK if item.counts.completion == 1 else CHUNK)
            if item.HasField("finish"):
                put(clients.pop(item.handle), LAST)


class Connection(asyncio.Protocol):
    """One client; a request comes in one piece."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._loop.turn.writes.join(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._loop.turn.writes.leave(self._transport)

    def data_received(self, data: bytes) -> None:
        body = json.loads(data.partition(b"\r\n\r\n")[2])
        # As long as the toy model's tokenizer makes it.
        prompt_tokens = sum(len(message["content"]) for message in body["messages"])
        self._loop.submit(self._transport, prompt_tokens, body["max_tokens"])


async def serve(port: int, workers: Sequence[str], reader: str) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    bare = Loop(workers, reader)
    server = await loop.create_server(lambda: Connection(bare), "127.0.0.1", port)
    print(f"bare loop at 127.0.0.1:{port}", flush=True)
    await stop.wait()
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", nargs="+", required=True, help="host:port of their gRPC")
    parser.add_argument("--reader", choices=["http2", "grpc.aio"], default="http2")
    options = parser.parse_args()
    uvloop.run(serve(options.port, options.workers, options.reader))


if __name__ == "__main__":
    main()
