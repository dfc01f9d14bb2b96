"""One HTTP request being answered in this process: a sink of the engine, a source of bytes."""

import asyncio
import uuid
from array import array
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass

from radixgate.errors import WorkerRefused
from radixgate.proto.contract import WHOLE_CREDIT
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext, GenerationRequest
from radixgate.worker.engine.engine import Engine

# Tokens a streamed request may have produced that its client has not taken yet. A slow reader stops
# its own request there and nothing else.
STREAM_CREDIT = 512


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with its prompts turned into ids, ready for the engine."""

    request: GenerationRequest
    prompts: Sequence["array[int]"]
    request_id: str
    model: str
    created: int  # seconds since the epoch
    token_bytes: Callable[[int], bytes]
    report_cached: bool = True


class Answer:
    """Submits the prompts of one request and renders what comes back.

    Use `close` when done or when the client has left: what still runs is aborted.
    """

    def __init__(self, engine: Engine, asked: Asked) -> None:
        self._engine = engine
        request = asked.request
        # Without a rid of the client's the engine gets a fresh one: two requests may well carry
        # the same x-request-id at once, and must not be refused for it.
        rids = request.rids or [uuid.uuid4().hex for _ in asked.prompts]
        self._renderer = request.renderer(
            AnswerContext(
                asked.request_id,
                asked.model,
                asked.created,
                asked.token_bytes,
                rids=rids,
                report_cached=asked.report_cached,
            )
        )
        self._credit = STREAM_CREDIT if request.stream else WHOLE_CREDIT
        self._open = len(asked.prompts) * (request.sampling.n or 1)
        # Bounded by the credit: the engine emits nothing beyond it.
        self._batches: list[pb.StepBatch] = []
        self._wake = asyncio.Event()
        for handle, (ids, rid) in enumerate(zip(asked.prompts, rids, strict=True)):
            engine.submit(self, self._submit(request, handle, ids, rid))

    @property
    def content_type(self) -> bytes:
        return self._renderer.content_type

    def deliver(self, batch: pb.StepBatch) -> None:
        """Called by the engine on the loop's thread, once a step."""
        self._batches.append(batch)
        self._wake.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The answer's bytes as they come about.

        Raises WorkerRefused if the engine refuses a prompt, instead of the first bytes, or if it
        fails on the way: then what has come is no answer.
        """
        while self._open:
            await self._wake.wait()
            self._wake.clear()
            batches, self._batches = self._batches, []
            taken: dict[int, int] = {}
            piece = b"".join(self._take(batch, taken) for batch in batches)
            if piece:
                yield piece
            for handle, tokens in taken.items():
                if tokens and self._credit == STREAM_CREDIT:
                    self._engine.add_credit(self, handle, tokens)
        yield self._renderer.end()

    def abort(self, handles: Iterable[int]) -> None:
        """End these prompts with reason ABORT; what has come so far is their answer."""
        for handle in handles:
            self._engine.abort(self, handle)

    def close(self) -> None:
        self._engine.detach(self)

    def _submit(
        self, request: GenerationRequest, handle: int, ids: "array[int]", rid: str
    ) -> pb.Submit:
        submit = pb.Submit(
            handle=handle,
            rid=rid,
            input_ids=ids.tobytes(),
            sampling=request.sampling,
            priority=request.priority,
            credit=self._credit,
        )
        if request.salt is not None:
            submit.salt = request.salt
        return submit

    def _take(self, batch: pb.StepBatch, taken: dict[int, int]) -> bytes:
        for refused in batch.refused:
            raise refusal(refused)
        rendered = []
        for item in batch.items:
            if item.finish.HasField("status"):
                raise WorkerRefused(item.finish.message, status=item.finish.status)
            rendered.append(self._renderer.item(item.handle, item))
            taken[item.handle] = taken.get(item.handle, 0) + len(item.token_ids)
            self._open -= item.HasField("finish")
        return b"".join(rendered)


def refusal(refused: pb.Refused) -> WorkerRefused:
    """The engine's refusal as the error a client sees."""
    field = refused.field if refused.HasField("field") else None
    return WorkerRefused(refused.message, status=refused.status, param=field)
