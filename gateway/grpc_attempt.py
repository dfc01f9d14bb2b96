"""An attempt at a worker of ours: items come in, the bytes of an HTTP answer go out."""

from collections.abc import Callable
from dataclasses import dataclass

from radixgate.errors import RadixgateError, WorkerBusy, WorkerFailed, WorkerRefused
from radixgate.gateway.abort_order import AbortOrder
from radixgate.gateway.answer_progress import STREAM_CREDIT, AnswerProgress
from radixgate.gateway.attach import AttachStream
from radixgate.gateway.attempt import AnswerCounts, Downstream
from radixgate.proto import sse
from radixgate.proto.generated import worker_pb2 as pb

_GIVE_BACK = STREAM_CREDIT // 2
# The worker is full or stopping. Another one may do, as when it is broken (500).
_BUSY = frozenset((429, 503))


@dataclass(slots=True)
class _Running:
    """One `Submit` of this attempt."""

    prompt: int
    rid: str  # the client's, where it gave one
    prior: int  # tokens of its choice that came before
    open_choices: int
    untaken: int = 0  # tokens emitted and not given back as credit


class GrpcAttempt:
    """What is left of one request, at one worker. A receiver of the stream's outputs."""

    __slots__ = (
        "_cancelled",
        "_downstream",
        "_on_over",
        "_paused",
        "_progress",
        "_running",
        "_stream",
        "_streamed",
    )

    def __init__(
        self,
        stream: AttachStream,
        downstream: Downstream,
        progress: AnswerProgress,
        *,
        streamed: bool,
        on_over: Callable[["GrpcAttempt"], None],
    ) -> None:
        """`on_over` is called once it has ended, however; calling it twice must be harmless."""
        self._stream = stream
        self._downstream = downstream
        self._progress = progress
        self._streamed = streamed
        self._on_over = on_over
        self._running: dict[int, _Running] = {}  # by handle
        self._paused = False
        self._cancelled = False

    def begin(self, new_rid: Callable[[], str], number: int) -> None:
        """Raises WorkerFailed if the worker is not attached."""
        wanted = self._progress.submits(new_rid)
        for _, _, submit in wanted:
            submit.number = number
        handles = self._stream.submit([submit for _, _, submit in wanted], self)
        for handle, (prompt, rid, submit) in zip(handles, wanted, strict=True):
            prior = len(submit.prior_output_ids) // 4
            self._running[handle] = _Running(prompt, rid, prior, submit.sampling.n or 1)

    def runs(self, order: AbortOrder) -> bool:
        return any(order.names(one.rid) for one in self._running.values())

    def abort(self, order: AbortOrder) -> int:
        """By order, not because the client has left: the answer ends with reason abort.

        Returns how many prompts were told to end.
        """
        handles = [handle for handle, one in self._running.items() if order.names(one.rid)]
        self._progress.ended_by_order = self._progress.ended_by_order or bool(handles)
        for handle in handles:
            self._stream.end(handle)
        return len(handles)

    # ------------------------------------------------------------------ from the gateway's core

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        for handle, running in self._running.items():
            self._give_back(handle, running)

    def delivered(self) -> AnswerCounts | None:
        usage = self._progress.usage
        return AnswerCounts(
            prompt=usage.prompt_tokens or None,  # no item has told it yet
            cached=usage.cached_tokens,
            completion=self._progress.tokens,
        )

    def cancel(self) -> None:
        self._cancelled = True
        for handle in self._running:
            self._stream.abort(handle)
        self._running.clear()
        self._on_over(self)

    # ------------------------------------------------------------------ from the worker's stream

    def on_item(self, item: pb.Item) -> None:
        handle = item.handle
        # Asked once: each look at a field of a message makes an object.
        finishes = item.HasField("finish")
        if finishes and item.finish.HasField("status"):
            self._fail(handle, WorkerFailed(item.finish.message))
            return
        running = self._running[handle]
        data = self._progress.take(running.prompt, item, running.prior)
        if self._streamed:
            if not self._progress.head_sent:
                self._send_head(None)
            if data:
                self._downstream.on_body(data)
            running.untaken += len(item.token_ids)
            if running.untaken >= _GIVE_BACK:
                self._give_back(handle, running)
        if finishes:
            self._finish_choice(handle, running)

    def on_refused(self, refused: pb.Refused) -> None:
        field = refused.field if refused.HasField("field") else None
        error: RadixgateError = WorkerRefused(refused.message, status=refused.status, param=field)
        # An attempt that was given up may still be ending at the worker under the same rid.
        own_rid_lives = refused.status == 409 and self._progress.attempts > 1
        if refused.status in _BUSY or own_rid_lives:
            error = WorkerBusy(refused.message)
        elif refused.status == 500:
            error = WorkerFailed(refused.message)
        self._fail(refused.handle, error)

    def on_lost(self, error: RadixgateError) -> None:
        if self._cancelled:
            return
        self._running.clear()
        self._on_over(self)
        self._downstream.on_failure(error)

    def _fail(self, handle: int, error: RadixgateError) -> None:
        """The worker has ended this handle; it is told to end the others."""
        self._running.pop(handle, None)
        self._stream.forget(handle)
        self.cancel()
        self._downstream.on_failure(error)

    def _finish_choice(self, handle: int, running: _Running) -> None:
        running.open_choices -= 1
        if running.open_choices:
            return
        del self._running[handle]
        self._stream.forget(handle)
        if self._progress.complete:
            self._end()

    def _end(self) -> None:
        self._on_over(self)
        rest = self._progress.renderer.end()
        if not self._progress.head_sent:
            self._send_head(len(rest))
        self._downstream.on_body(rest)
        usage = self._progress.usage
        self._downstream.on_end(
            AnswerCounts(
                prompt=usage.prompt_tokens,
                cached=usage.cached_tokens,
                completion=usage.completion_tokens,
            )
        )

    def _send_head(self, length: int | None) -> None:
        self._progress.head_sent = True
        content_type = self._progress.renderer.content_type
        headers = [(b"content-type", content_type)]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        if content_type == sse.CONTENT_TYPE:
            headers.append((b"cache-control", b"no-cache"))
        self._downstream.on_head(200, headers)

    def _give_back(self, handle: int, running: _Running) -> None:
        if running.untaken and not self._paused:
            self._stream.add_credit(handle, running.untaken)
            running.untaken = 0
