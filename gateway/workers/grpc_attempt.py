"""An attempt at a worker of ours: items come in, the bytes of an HTTP answer go out."""

from array import array
from collections.abc import Callable

from radixgate.errors import RadixgateError, WorkerBusy, WorkerFailed, WorkerRefused
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.gateway.attempt.attempt import AnswerCounts, Downstream, WholeHead
from radixgate.gateway.attempt.flow import NOTED_TOKENS, Flow
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.heads import http_answer
from radixgate.gateway.upstream.attach import AttachStream
from radixgate.proto import sse
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.single_tokens import SingleTokens

# The worker is full or stopping. Another one may do, as when it is broken (500).
_BUSY = frozenset((429, 503))
_OF_EVENTS = [(b"content-type", sse.CONTENT_TYPE), (b"cache-control", b"no-cache")]
_HEAD_OF_EVENTS = WholeHead(
    200, _OF_EVENTS, http_answer.head_lines(200, _OF_EVENTS), framed=False, streams=True
)


class GrpcAttempt:
    """What is left of one request, at one worker."""

    __slots__ = (
        "_on_over",
        "_over",
        "_paused",
        "_progress",
        "_running",
        "_stream",
        "_streamed",
        "downstream",
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
        self.downstream = downstream
        self._progress = progress
        self._streamed = streamed
        self._on_over = on_over
        self._running: dict[int, _Running] = {}  # by handle
        self._paused = False
        self._over = False

    def begin(self, new_rid: Callable[[], str], number: int) -> None:
        """Raises WorkerFailed if the worker is not attached."""
        wanted = self._progress.submits(new_rid)
        for _, _, submit in wanted:
            submit.number = number
        running = [_Running(self, prompt, rid, submit) for prompt, rid, submit in wanted]
        handles = self._stream.submit([submit for _, _, submit in wanted], running)
        for handle, one in zip(handles, running, strict=True):
            one.handle = handle
            self._running[handle] = one

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
        for running in self._running.values():
            self.give_back(running)

    def delivered(self) -> AnswerCounts | None:
        usage = self._progress.usage
        return AnswerCounts(
            prompt=usage.prompt_tokens or None,  # no item has told it yet
            cached=usage.cached_tokens,
            completion=self._progress.tokens,
        )

    def ends_as(self, error: RadixgateError) -> RadixgateError:
        return error  # its progress knows

    def cancel(self) -> None:
        self._over = True
        for handle in self._running:
            self._stream.abort(handle)
        self._running.clear()
        self._on_over(self)

    # ------------------------------------------------------------------ from the worker's stream

    def on_item(self, running: "_Running", item: pb.Item) -> None:
        # Asked once: each look at a field of a message makes an object.
        finishes = item.HasField("finish")
        if finishes and item.finish.HasField("status"):
            self._fail(running.handle, WorkerFailed(item.finish.message))
            return
        data = self._progress.take(running.prompt, item, running.prior)
        if self._streamed:
            if data:
                self._send(data)
            if self._over:
                return  # it could not be handed on
            running.untaken += len(item.token_ids)
            if running.untaken >= NOTED_TOKENS:
                self.give_back(running)
        if finishes:
            self._finish_choice(running)

    def begin_tokens(self, prompt: int) -> "tuple[array[int], SingleTokens]":
        """Before the first single token of a prompt: see `AnswerProgress.tokens_of`."""
        return self._progress.tokens_of(prompt)

    def send_event(self, event: bytes) -> ChunkLane | None:
        """The way for those behind it, if there is a shorter one."""
        self._send(event)
        return self.downstream.lane()

    def let_flow(self, running: "_Running", flow: Flow) -> None:
        """The single tokens that follow go by it, until an item of another kind comes."""
        self._stream.let_flow(running.handle, flow)

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
        """Each of its prompts says so; the first counts."""
        if self._over:
            return
        self.cancel()
        self.downstream.on_failure(error)

    def _fail(self, handle: int, error: RadixgateError) -> None:
        """The worker has ended this handle; it is told to end the others."""
        self._running.pop(handle, None)
        self._stream.forget(handle)
        self.cancel()
        self.downstream.on_failure(error)

    def _finish_choice(self, running: "_Running") -> None:
        running.open_choices -= 1
        if running.open_choices:
            return
        del self._running[running.handle]
        self._stream.forget(running.handle)
        if self._progress.complete:
            self._end()

    def _end(self) -> None:
        self._on_over(self)
        rest = self._progress.renderer.end()
        if self._streamed:
            self._send(rest)
        if self._over:
            return  # it could not be handed on
        usage = self._progress.usage
        counts = AnswerCounts(
            prompt=usage.prompt_tokens,
            cached=usage.cached_tokens,
            completion=usage.completion_tokens,
        )
        if self._streamed:
            self.downstream.on_end(counts)
        else:
            self.downstream.on_answer(_head_of_whole(len(rest)), b"", rest, counts)

    def _send(self, events: bytes) -> None:
        """Behind the head of a stream, which goes with the first of them."""
        if self._progress.head_sent:
            self.downstream.on_body(events)
            return
        self._progress.head_sent = True
        self.downstream.on_begin(_HEAD_OF_EVENTS, b"", events)

    def give_back(self, running: "_Running") -> None:
        """Credit for what the client has taken; an answer that goes out whole has had all of it."""
        if self._streamed and not self._paused and (tokens := running.take_untaken()):
            self._stream.add_credit(running.handle, tokens)


class _Running:
    """One `Submit` of an attempt, and the receiver of its outputs."""

    __slots__ = (
        "_attempt",
        "_flow",
        "_ids",
        "_lane",
        "_tokens",
        "handle",
        "open_choices",
        "prior",
        "prompt",
        "rid",
        "untaken",
    )

    def __init__(self, attempt: GrpcAttempt, prompt: int, rid: str, submit: pb.Submit) -> None:
        self._attempt = attempt
        self.handle = 0  # until it is submitted
        self.prompt = prompt
        self.rid = rid  # the client's, where it gave one
        self.prior = len(submit.prior_output_ids) // 4  # tokens of its choice that came before
        self.open_choices = submit.sampling.n or 1
        self.untaken = 0  # tokens emitted and not given back as credit, beside those that flowed
        self._tokens: SingleTokens | None = None  # None: no single token has come
        self._ids = array("I")
        self._lane: ChunkLane | None = None  # None: there is none, or not yet
        self._flow: Flow | None = None  # None: none has flowed yet

    def on_token(self, token_id: int, text: str) -> None:
        tokens = self._tokens
        if tokens is None:
            self._ids, tokens = self._attempt.begin_tokens(self.prompt)
            self._tokens = tokens
        self._ids.append(token_id)
        data = tokens.next(token_id, text)
        if data:
            if self._lane is not None:
                self._lane.send(data)
            else:
                self._lane = self._attempt.send_event(data)
            self._flow_on(tokens)
        self.untaken += 1
        if self.untaken >= NOTED_TOKENS:
            self._attempt.give_back(self)

    def _flow_on(self, tokens: SingleTokens) -> None:
        """From here on events differ by their text alone, if they do."""
        if self._lane is None:
            return
        frame = tokens.frame()
        if frame is not None:
            self.untaken = self.take_untaken()
            self._flow = Flow(self._lane, self._ids, *frame)
            self._attempt.let_flow(self, self._flow)

    def take_untaken(self) -> int:
        """All that were emitted and not given back; they are, now."""
        untaken, self.untaken, flow = self.untaken, 0, self._flow
        if flow is not None:
            untaken, flow.untaken = untaken + flow.untaken, 0
        return untaken

    def on_flowed(self) -> None:
        self._attempt.give_back(self)

    def on_item(self, item: pb.Item) -> None:
        self._attempt.on_item(self, item)

    def on_refused(self, refused: pb.Refused) -> None:
        self._attempt.on_refused(refused)

    def on_lost(self, error: RadixgateError) -> None:
        self._attempt.on_lost(error)


def _head_of_whole(length: int) -> WholeHead:
    headers = [http_answer.JSON, (b"content-length", b"%d" % length)]
    lines = http_answer.head_lines(200, headers)
    return WholeHead(200, headers, lines, framed=True, streams=False)
