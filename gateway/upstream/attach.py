"""The one stream between this gateway and a worker: commands out, the outputs of each step in."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from google.protobuf.message import DecodeError

from radixgate.clock import Clock
from radixgate.errors import InternalFault, RadixgateError, WorkerFailed
from radixgate.gateway.attempt.answer_progress import STREAM_CREDIT
from radixgate.gateway.attempt.flow import Columns, Flow, Flows
from radixgate.gateway.upstream.grpc_messages import BrokenStream
from radixgate.gateway.upstream.reconnect_pause import ReconnectPause
from radixgate.log import fields
from radixgate.proto.contract import CONTRACT_VERSION
from radixgate.proto.generated import worker_pb2 as pb

# A worker that has stopped reading must not fill this process: past this, attempts fail at once.
MAX_UNSENT_BYTES = 64 * 1024 * 1024
_GIVE_BACK = STREAM_CREDIT // 2
_TIMER_SLACK_S = 0.005  # until a timer that has run out is heard
# Once: looking it up there raises and catches an exception inside, each time.
_read_batch = pb.StepBatch.FromString
_log = logging.getLogger(__name__)


class Receiver(Protocol):
    """Who gets the outputs of one handle."""

    def on_item(self, item: pb.Item) -> None: ...

    def on_token(self, token_id: int, text: str) -> None:
        """An item that brings this token of choice 0, its text, and nothing else."""
        ...

    def on_flowed(self) -> None:
        """NOTED_TOKENS or more have gone by its flow since it looked."""
        ...

    def on_refused(self, refused: pb.Refused) -> None: ...

    def on_lost(self, error: RadixgateError) -> None:
        """The stream broke: the worker aborts what ran, nothing more comes."""
        ...


class AttachLine(Protocol):
    """One connection to the worker, of messages in bytes."""

    @property
    def unsent_bytes(self) -> int:
        """Of messages that wait for the worker to take others."""
        ...

    def send(self, message: bytes) -> None:
        """Behind what was sent before; it waits for the connection."""
        ...

    async def run(self) -> str:
        """Connect, and stay until it ends; why it did. Cancelled: it is closed."""
        ...


# Makes a line that hands on what comes, which may raise BrokenStream.
Dial = Callable[[Callable[[bytes], None]], AttachLine]


class _Connection:
    """What belongs to one line. One that has ended can take none of the next's."""

    def __init__(self, dial: Dial, take: Callable[[pb.StepBatch, Columns], None]) -> None:
        self.line = dial(self._on_message)
        self._take = take
        self._credits: dict[int, int] = {}  # tokens by live handle, not sent yet
        self._takes_credits = False  # several in one command

    def put(self, command: pb.Command) -> None:
        self.line.send(command.SerializeToString())

    def _on_message(self, message: bytes) -> None:
        """Raises BrokenStream before any of it is handed on."""
        try:
            batch = _read_batch(message)
        except DecodeError as exc:
            raise BrokenStream(f"a message that is no batch of a step: {exc}") from exc
        tokens = batch.tokens
        # As slices, which are read in a third less time than one after the other.
        columns = tokens.handles[:], tokens.token_ids[:], tokens.texts[:]
        handles, ids, texts = len(columns[0]), len(columns[1]), len(columns[2])
        if handles != ids or handles != texts:
            raise BrokenStream(f"tokens of {handles} handles, {ids} ids and {texts} texts")
        if handles:
            self._takes_credits = True
        self._take(batch, columns)

    def add_credit(self, handle: int, tokens: int) -> None:
        """Goes when half of a stream's credit is used, and takes along what others have earned
        by then: with a message for each stream there is one in nearly every step, and it costs as
        much as ten items and more."""
        waiting = self._credits[handle] = self._credits.get(handle, 0) + tokens
        if waiting < _GIVE_BACK:
            return
        if not self._takes_credits:
            self.forget_credit(handle)
            self.put(pb.Command(credit=pb.Credit(handle=handle, tokens=waiting)))
            return
        credits, self._credits = self._credits, {}
        self.put(pb.Command(credits=pb.Credits(handles=credits, tokens=credits.values())))

    def forget_credit(self, handle: int) -> None:
        """The handle needs none any more, or has had it."""
        self._credits.pop(handle, None)


class AttachStream:
    """Keeps the stream open while `run` runs, and shares it among all attempts at this worker."""

    def __init__(self, dial: Dial, gateway_id: str, worker: str, clock: Clock) -> None:
        self._dial = dial
        hello = pb.Hello(gateway_id=gateway_id, version=CONTRACT_VERSION, reads_tokens=True)
        self._hello = pb.Command(hello=hello)
        self._worker = worker
        self._clock = clock
        self._pause = ReconnectPause(clock)
        self._again_at = clock.now()  # when the next connection is begun, if there is none
        self._next_handle = 1
        self.heard = False  # outputs have come; who asks takes it back
        self._receivers: dict[int, Receiver] = {}
        self._flows = Flows()  # of receivers
        # None between two connections. Commands given while one is being opened wait for it.
        self._connection: _Connection | None = None

    @property
    def in_flight(self) -> int:
        return len(self._receivers)

    def submit(self, submits: Sequence[pb.Submit], receivers: Sequence[Receiver]) -> list[int]:
        """Send prompts, each with a receiver of its own; their handles come back.

        Raises WorkerFailed if nothing can be sent.
        """
        connection = self._connection
        if connection is None:
            raise self._detached(f"worker {self._worker} is not attached")
        size, unsent = sum(len(one.input_ids) for one in submits), connection.line.unsent_bytes
        if unsent + size > MAX_UNSENT_BYTES:
            raise WorkerFailed(f"worker {self._worker} has not taken {unsent} bytes of commands")
        handles = []
        for submit, receiver in zip(submits, receivers, strict=True):
            submit.handle = self._next_handle
            self._next_handle += 1
            self._receivers[submit.handle] = receiver
            handles.append(submit.handle)
            connection.put(pb.Command(submit=submit))
        return handles

    def abort(self, handle: int) -> None:
        """Tell the worker and forget the handle; safe for one that has ended."""
        if self._receivers.pop(handle, None) is not None:
            self._flows.end(handle)
            self._forget_credit(handle)
            self._put(pb.Command(abort=pb.Abort(handle=handle)))

    def end(self, handle: int) -> None:
        """Tell the worker to end the request; what it says last still arrives."""
        if handle in self._receivers:
            self._put(pb.Command(abort=pb.Abort(handle=handle)))

    def forget(self, handle: int) -> None:
        """The handle has had its last output."""
        self._receivers.pop(handle, None)
        self._flows.end(handle)
        self._forget_credit(handle)

    def let_flow(self, handle: int, flow: Flow) -> None:
        """Its single tokens go by it, up to the next item of another kind or its end."""
        if handle in self._receivers:
            self._flows.begin(handle, flow)

    def add_credit(self, handle: int, tokens: int) -> None:
        """So many tokens were taken; the worker hears of it in time, and of many at once."""
        if handle in self._receivers and self._connection is not None:
            self._connection.add_credit(handle, tokens)

    async def run(self) -> None:
        """Connect, and connect again whenever the stream breaks; runs until cancelled."""
        while True:
            if self._connection is not None:
                # An earlier `run` was cancelled and has not ended yet.
                self._break_off(self._connection, WorkerFailed(f"worker {self._worker} is another"))
            self._pause.begin()
            connection = self._connection = _Connection(self._dial, self._take)
            connection.put(self._hello)
            error = "closed by the gateway"
            try:
                error = await connection.line.run()
            finally:
                pause_s = self._pause.end()
                self._again_at = self._clock.now() + pause_s
                failed = self._detached(f"worker {self._worker} broke off: {error}")
                self._break_off(connection, failed)
            _log.debug("stream ended", extra=fields(worker=self._worker, error=error))
            await asyncio.sleep(pause_s)

    def _detached(self, message: str) -> WorkerFailed:
        """It rests until the next connection is begun: what is sent then waits for that."""
        error = WorkerFailed(message)
        error.rest_s = max(0.0, self._again_at - self._clock.now()) + _TIMER_SLACK_S
        return error

    def _forget_credit(self, handle: int) -> None:
        if self._connection is not None:
            self._connection.forget_credit(handle)

    def _put(self, command: pb.Command) -> None:
        if self._connection is not None:
            self._connection.put(command)

    def _take(self, batch: pb.StepBatch, columns: Columns) -> None:
        self.heard = True
        # As a slice: the end of a message's own sequence is an exception, made and thrown away.
        for refused in batch.refused[:]:
            receiver = self._receivers.pop(refused.handle, None)
            if receiver is None:
                continue
            try:
                receiver.on_refused(refused)
            except Exception:
                self._fail(refused.handle, receiver)
        # Outputs of a handle that was aborted here may still be on their way.
        receivers = self._receivers
        rest, owing = self._flows.take(columns)
        for handle in owing:
            receiver = receivers.get(handle)
            if receiver is None:
                continue
            try:
                receiver.on_flowed()
            except Exception:
                self._fail(handle, receiver)
        for handle, token_id, text in rest:
            receiver = receivers.get(handle)
            if receiver is None:
                continue
            try:
                receiver.on_token(token_id, text)
            except Exception:
                self._fail(handle, receiver)
        for item in batch.items[:]:
            receiver = receivers.get(item.handle)
            if receiver is None:
                continue
            self._flows.end(item.handle)
            try:
                receiver.on_item(item)
            except Exception:
                self._fail(item.handle, receiver)

    def _fail(self, handle: int, receiver: Receiver) -> None:
        """A fault of ours in one answer must not break the stream that all share."""
        _log.exception("an item could not be rendered")
        self.abort(handle)
        _tell_lost(receiver, InternalFault())

    def _break_off(self, connection: _Connection, error: RadixgateError) -> None:
        if self._connection is not connection:
            return  # a later `run` has the stream, and what runs is its
        self._connection = None
        receivers, self._receivers = self._receivers, {}
        self._flows.clear()
        for receiver in receivers.values():
            _tell_lost(receiver, error)


def _tell_lost(receiver: Receiver, error: RadixgateError) -> None:
    """A fault of ours in it must not keep the others from what is theirs."""
    try:
        receiver.on_lost(error)
    except Exception:
        _log.exception("a request could not be told that it is lost")
