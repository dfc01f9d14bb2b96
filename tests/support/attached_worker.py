"""The other end of an `AttachStream`, in the same process: reads commands, sends batches."""

import asyncio
from collections.abc import Callable
from types import TracebackType

from clocks import FakeClock
from radixgate.gateway.upstream.attach import AttachStream
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.step_tokens import with_tokens
from until import PATIENCE_S


class InnerLine:
    """An `AttachLine` without a wire: messages are there as they are sent."""

    def __init__(
        self, on_message: Callable[[bytes], None], commands: "asyncio.Queue[pb.Command]"
    ) -> None:
        self.on_message = on_message
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.unsent_bytes = 0
        self._commands = commands

    def send(self, message: bytes) -> None:
        self._commands.put_nowait(pb.Command.FromString(message))

    async def run(self) -> str:
        return await self.ended


class AttachedWorker:
    """Plays the worker for one stream; use as an async context around the test."""

    def __init__(self) -> None:
        self.commands: asyncio.Queue[pb.Command] = asyncio.Queue()
        self._line: InnerLine | None = None
        self.connections = 0
        self.clock = FakeClock()
        self.stream = AttachStream(self._dial, "gateway-1", "worker-1", self.clock)

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

    def _dial(self, on_message: Callable[[bytes], None]) -> "InnerLine":
        self.connections += 1
        self._line = InnerLine(on_message, self.commands)
        return self._line

    async def next_command(self) -> pb.Command:
        async with asyncio.timeout(PATIENCE_S):
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
        await self.send_batch(batch)

    async def send_batch(self, batch: pb.StepBatch) -> None:
        self.say(batch.SerializeToString())
        await settle()

    def say(self, message: bytes) -> None:
        """Whatever it is; what the gateway makes of it may be raised."""
        assert self._line is not None
        self._line.on_message(message)

    async def die(self) -> None:
        assert self._line is not None
        self._line.ended.set_result("connection reset")
        await settle()


async def settle() -> None:
    """Let everything that can run now run."""
    for _ in range(10):
        await asyncio.sleep(0)
