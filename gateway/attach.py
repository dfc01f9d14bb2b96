"""The one stream between this gateway and a worker: commands out, the outputs of each step in."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import grpc

from radixgate.errors import RadixgateError, WorkerFailed
from radixgate.gateway.answer_progress import STREAM_CREDIT
from radixgate.log import fields
from radixgate.proto.contract import CONTRACT_VERSION
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc

RECONNECT_FIRST_S = 0.1
RECONNECT_MOST_S = 1.0
# A worker that has stopped reading must not fill this process: past this, attempts fail at once.
MAX_UNSENT_BYTES = 64 * 1024 * 1024
_GIVE_BACK = STREAM_CREDIT // 2
_log = logging.getLogger(__name__)


class Receiver(Protocol):
    """Who gets the outputs of one handle."""

    def on_item(self, item: pb.Item) -> None: ...

    def on_token(self, token_id: int, text: str) -> None:
        """An item that brings this token of choice 0, its text, and nothing else."""
        ...

    def on_refused(self, refused: pb.Refused) -> None: ...

    def on_lost(self, error: RadixgateError) -> None:
        """The stream broke: the worker aborts what ran, nothing more comes."""
        ...


class _Outbound:
    """The commands of one connection. A connection that has ended can take none of the next's."""

    def __init__(self, hello: pb.Command) -> None:
        self._commands: deque[pb.Command] = deque((hello,))
        self._credits: dict[int, int] = {}  # tokens by live handle, not sent yet
        self._wake = asyncio.Event()
        self.unsent_bytes = 0
        self.takes_credits = False  # several in one command

    def put(self, command: pb.Command) -> None:
        self.unsent_bytes += _size(command)
        self._commands.append(command)
        self._wake.set()

    def add_credit(self, handle: int, tokens: int) -> None:
        """Goes when half of a stream's credit is used, and takes along what others have earned
        by then: with a message for each stream there is one in nearly every step, and it costs as
        much as ten items and more."""
        waiting = self._credits[handle] = self._credits.get(handle, 0) + tokens
        if waiting < _GIVE_BACK:
            return
        if not self.takes_credits:
            self.forget_credit(handle)
            self.put(pb.Command(credit=pb.Credit(handle=handle, tokens=waiting)))
            return
        credits, self._credits = self._credits, {}
        self.put(pb.Command(credits=pb.Credits(handles=credits, tokens=credits.values())))

    def forget_credit(self, handle: int) -> None:
        """The handle needs none any more, or has had it."""
        self._credits.pop(handle, None)

    async def commands(self) -> AsyncIterator[pb.Command]:
        while True:
            while self._commands:
                command = self._commands.popleft()
                self.unsent_bytes -= _size(command)
                yield command
            self._wake.clear()
            await self._wake.wait()


class AttachStream:
    """Keeps the stream open while `run` runs, and shares it among all attempts at this worker."""

    def __init__(self, stub: rpc.WorkerStub, gateway_id: str, worker: str) -> None:
        self._stub = stub
        hello = pb.Hello(gateway_id=gateway_id, version=CONTRACT_VERSION, reads_tokens=True)
        self._hello = pb.Command(hello=hello)
        self._worker = worker
        self._next_handle = 1
        self.heard = False  # outputs have come; who asks takes it back
        self._receivers: dict[int, Receiver] = {}
        # None between two connections. Commands given while one is being opened wait for it.
        self._outbound: _Outbound | None = None

    @property
    def in_flight(self) -> int:
        return len(self._receivers)

    def submit(self, submits: Sequence[pb.Submit], receivers: Sequence[Receiver]) -> list[int]:
        """Send prompts, each with a receiver of its own; their handles come back.

        Raises WorkerFailed if nothing can be sent.
        """
        outbound = self._outbound
        if outbound is None:
            raise WorkerFailed(f"worker {self._worker} is not attached")
        size = sum(len(submit.input_ids) for submit in submits)
        if outbound.unsent_bytes + size > MAX_UNSENT_BYTES:
            raise WorkerFailed(
                f"worker {self._worker} has not taken {outbound.unsent_bytes} bytes of commands"
            )
        handles = []
        for submit, receiver in zip(submits, receivers, strict=True):
            submit.handle = self._next_handle
            self._next_handle += 1
            self._receivers[submit.handle] = receiver
            handles.append(submit.handle)
            outbound.put(pb.Command(submit=submit))
        return handles

    def abort(self, handle: int) -> None:
        """Tell the worker and forget the handle; safe for one that has ended."""
        if self._receivers.pop(handle, None) is not None:
            self._forget_credit(handle)
            self._put(pb.Command(abort=pb.Abort(handle=handle)))

    def end(self, handle: int) -> None:
        """Tell the worker to end the request; what it says last still arrives."""
        if handle in self._receivers:
            self._put(pb.Command(abort=pb.Abort(handle=handle)))

    def forget(self, handle: int) -> None:
        """The handle has had its last output."""
        self._receivers.pop(handle, None)
        self._forget_credit(handle)

    def add_credit(self, handle: int, tokens: int) -> None:
        """So many tokens were taken; the worker hears of it in time, and of many at once."""
        if handle in self._receivers and self._outbound is not None:
            self._outbound.add_credit(handle, tokens)

    async def run(self) -> None:
        """Connect, and connect again whenever the stream breaks; runs until cancelled."""
        pause_s = RECONNECT_FIRST_S
        while True:
            error = "the worker closed the stream"
            if self._outbound is not None:
                # An earlier `run` was cancelled and has not ended yet.
                self._break_off(self._outbound, WorkerFailed(f"worker {self._worker} is another"))
            outbound = self._outbound = _Outbound(self._hello)
            try:
                async for batch in self._stub.Attach(outbound.commands()):
                    pause_s = RECONNECT_FIRST_S
                    self.heard = True
                    if batch.HasField("tokens"):
                        outbound.takes_credits = True
                    self._dispatch(batch)
            except grpc.aio.AioRpcError as exc:
                error = exc.details() or exc.code().name
            finally:
                self._break_off(outbound, WorkerFailed(f"worker {self._worker} broke off: {error}"))
            _log.debug("stream ended", extra=fields(worker=self._worker, error=error))
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RECONNECT_MOST_S)

    def _forget_credit(self, handle: int) -> None:
        if self._outbound is not None:
            self._outbound.forget_credit(handle)

    def _put(self, command: pb.Command) -> None:
        if self._outbound is not None:
            self._outbound.put(command)

    def _dispatch(self, batch: pb.StepBatch) -> None:
        for refused in batch.refused:
            receiver = self._receivers.pop(refused.handle, None)
            if receiver is not None:
                receiver.on_refused(refused)
        # Outputs of a handle that was aborted here may still be on their way.
        tokens, receivers = batch.tokens, self._receivers
        for handle, token_id, text in zip(
            tokens.handles, tokens.token_ids, tokens.texts, strict=True
        ):
            receiver = receivers.get(handle)
            if receiver is None:
                continue
            try:
                receiver.on_token(token_id, text)
            except Exception:
                self._fail(handle, receiver)
        for item in batch.items:
            receiver = receivers.get(item.handle)
            if receiver is None:
                continue
            try:
                receiver.on_item(item)
            except Exception:
                self._fail(item.handle, receiver)

    def _fail(self, handle: int, receiver: Receiver) -> None:
        """A fault of ours in one answer must not break the stream that all share."""
        _log.exception("an item could not be rendered")
        self.abort(handle)
        receiver.on_lost(RadixgateError("internal error; the log has the details"))

    def _break_off(self, outbound: _Outbound, error: RadixgateError) -> None:
        if self._outbound is not outbound:
            return  # a later `run` has the stream, and what runs is its
        self._outbound = None
        receivers, self._receivers = self._receivers, {}
        for receiver in receivers.values():
            receiver.on_lost(error)


def _size(command: pb.Command) -> int:
    return len(command.submit.input_ids) if command.HasField("submit") else 0
