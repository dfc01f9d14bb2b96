"""The other end of an `AttachStream`, in the same process: reads commands, sends batches."""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, cast

import grpc

from radixgate.gateway.attach import AttachStream
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc
from radixgate.proto.step_tokens import with_tokens


class AttachedWorker:
    """Plays the worker for one stream; use as an async context around the test."""

    def __init__(self) -> None:
        self.commands: asyncio.Queue[pb.Command] = asyncio.Queue()
        self._batches: asyncio.Queue[pb.StepBatch | None] = asyncio.Queue()
        self.connections = 0
        stub = cast(rpc.WorkerStub, self)
        self.stream = AttachStream(stub, "gateway-1", "worker-1")

    async def __aenter__(self) -> "AttachedWorker":
        self._running = asyncio.create_task(self.stream.run())
        assert (await self.next_command()).hello.gateway_id == "gateway-1"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    # The one method of the stub that the stream calls.
    async def Attach(self, commands: AsyncIterator[pb.Command]) -> AsyncIterator[pb.StepBatch]:
        self.connections += 1

        async def read() -> None:
            async for command in commands:
                self.commands.put_nowait(command)

        reading = asyncio.create_task(read())
        try:
            while (batch := await self._batches.get()) is not None:
                yield batch
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.UNAVAILABLE, _NO_METADATA, _NO_METADATA, "connection reset"
            )
        finally:
            reading.cancel()

    async def next_command(self) -> pb.Command:
        async with asyncio.timeout(5):
            return await self.commands.get()

    async def send(
        self, *items: pb.Item, refused: pb.Refused | None = None, columns: bool = False
    ) -> None:
        """One batch, taken in by the gateway when this returns. `columns`: single tokens in them,
        as a worker sends them to who has said that it reads them."""
        batch = pb.StepBatch(items=items)
        if columns:
            batch = with_tokens(batch)
        if refused is not None:
            batch.refused.append(refused)
        self._batches.put_nowait(batch)
        await settle()

    async def die(self) -> None:
        self._batches.put_nowait(None)
        await settle()


async def settle() -> None:
    """Let everything that can run now run."""
    for _ in range(10):
        await asyncio.sleep(0)


_NO_METADATA = cast(Any, grpc.aio.Metadata())
