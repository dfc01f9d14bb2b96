"""An attempt at a worker of ours: items come in, the bytes of an HTTP answer go out."""

from collections.abc import Callable, Sequence
from random import Random

from radixgate.errors import RadixgateError, WorkerFailed, WorkerRefused
from radixgate.gateway.attach import AttachStream
from radixgate.gateway.attempt import AnswerCounts, Downstream, FrontRequest
from radixgate.proto import sse
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext, GenerationRequest
from radixgate.proto.usage import UsageSum

# Tokens a worker may emit ahead of a client that reads: enough to hide the way there and back, and
# all that a client which has stopped reading makes the gateway keep.
STREAM_CREDIT = 256
_GIVE_BACK = STREAM_CREDIT // 2
WHOLE_CREDIT = 2**31 - 1
# The worker is full, stopping or broken: another one may do, so the attempt counts as failed.
_TRY_ANOTHER = frozenset((429, 500, 503))


class GrpcAttempt:
    """One request at one worker: a `Submit` for each prompt. A receiver of the stream's outputs."""

    def __init__(
        self,
        stream: AttachStream,
        downstream: Downstream,
        request: FrontRequest,
        context: AnswerContext,
        on_over: Callable[["GrpcAttempt"], None],
    ) -> None:
        """`on_over` is called once it has ended, however; calling it twice must be harmless."""
        assert request.generation is not None
        self._stream = stream
        self._downstream = downstream
        self._streamed = request.generation.stream
        self._renderer = request.generation.renderer(context)
        self._on_over = on_over
        self._usage = UsageSum()
        self._prompt_of: dict[int, int] = {}
        self._handle_of: dict[str, int] = {}  # by rid
        self._open_choices: dict[int, int] = {}
        self._taken: dict[int, int] = {}  # emitted and not given back as credit
        self._head_sent = False
        self._paused = False
        self._cancelled = False

    def begin(self, submits: Sequence[pb.Submit]) -> None:
        """Raises WorkerFailed if the worker is not attached."""
        handles = self._stream.submit(submits, self)
        for prompt, (handle, submit) in enumerate(zip(handles, submits, strict=True)):
            self._prompt_of[handle] = prompt
            self._open_choices[handle] = submit.sampling.n or 1
            self._handle_of[submit.rid] = handle

    def abort(self, rid: str | None) -> int:
        """By order, not because the client has left: the answer ends with reason abort.

        None: every prompt of this request. Returns how many were told to end.
        """
        handles = [
            handle
            for own, handle in self._handle_of.items()
            if rid in (None, own) and handle in self._open_choices
        ]
        for handle in handles:
            self._stream.end(handle)
        return len(handles)

    # ------------------------------------------------------------------ from the gateway's core

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        for handle in list(self._taken):
            self._give_back(handle)

    def cancel(self) -> None:
        self._cancelled = True
        for handle in self._open_choices:
            self._stream.abort(handle)
        self._open_choices.clear()
        self._on_over(self)

    # ------------------------------------------------------------------ from the worker's stream

    def on_item(self, item: pb.Item) -> None:
        handle = item.handle
        if item.finish.HasField("status"):
            self._fail(handle, WorkerFailed(item.finish.message))
            return
        prompt = self._prompt_of[handle]
        self._usage.add(prompt, item)
        data = self._renderer.item(prompt, item)
        if self._streamed:
            if not self._head_sent:
                self._send_head(None)
            if data:
                self._downstream.on_body(data)
            self._taken[handle] = self._taken.get(handle, 0) + len(item.token_ids)
            if self._taken[handle] >= _GIVE_BACK:
                self._give_back(handle)
        if item.HasField("finish"):
            self._finish_choice(handle)

    def on_refused(self, refused: pb.Refused) -> None:
        field = refused.field if refused.HasField("field") else None
        error: RadixgateError = WorkerRefused(refused.message, status=refused.status, param=field)
        if refused.status in _TRY_ANOTHER:
            error = WorkerFailed(refused.message)
        self._fail(refused.handle, error)

    def on_lost(self, error: RadixgateError) -> None:
        if self._cancelled:
            return
        self._open_choices.clear()
        self._on_over(self)
        self._downstream.on_failure(error)

    def _fail(self, handle: int, error: RadixgateError) -> None:
        """The worker has ended this handle; it is told to end the others."""
        self._open_choices.pop(handle, None)
        self._stream.forget(handle)
        self.cancel()
        self._downstream.on_failure(error)

    def _finish_choice(self, handle: int) -> None:
        left = self._open_choices.get(handle, 0) - 1
        if left > 0:
            self._open_choices[handle] = left
            return
        self._open_choices.pop(handle, None)
        self._stream.forget(handle)
        if not self._open_choices:
            self._end()

    def _end(self) -> None:
        self._on_over(self)
        rest = self._renderer.end()
        if not self._head_sent:
            self._send_head(len(rest))
        self._downstream.on_body(rest)
        self._downstream.on_end(
            AnswerCounts(
                prompt=self._usage.prompt_tokens,
                cached=self._usage.cached_tokens,
                completion=self._usage.completion_tokens,
            )
        )

    def _send_head(self, length: int | None) -> None:
        self._head_sent = True
        headers = [(b"content-type", self._renderer.content_type)]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        if self._renderer.content_type == sse.CONTENT_TYPE:
            headers.append((b"cache-control", b"no-cache"))
        self._downstream.on_head(200, headers)

    def _give_back(self, handle: int) -> None:
        if self._paused:
            return
        tokens = self._taken.pop(handle, 0)
        if tokens:
            self._stream.add_credit(handle, tokens)


def submits_for(
    generation: GenerationRequest,
    prompts: Sequence[bytes],
    rng: Random,
    new_rid: Callable[[], str],
) -> list[pb.Submit]:
    """One `Submit` a prompt (ids as little-endian uint32), handles not yet given.

    A request without a seed is given one here, so that any worker continues it alike.
    """
    seed = generation.sampling.seed if generation.sampling.HasField("seed") else rng.getrandbits(63)
    submits = []
    for place, ids in enumerate(prompts):
        submit = pb.Submit(
            rid=generation.rids[place] if generation.rids else new_rid(),
            input_ids=ids,
            sampling=generation.sampling,
            priority=generation.priority,
            credit=STREAM_CREDIT if generation.stream else WHOLE_CREDIT,
        )
        submit.sampling.seed = seed
        if generation.salt is not None:
            submit.salt = generation.salt
        if generation.adapter is not None:
            submit.adapter = generation.adapter
        submits.append(submit)
    return submits
