"""Attempts at one worker of ours, all over its one stream."""

import asyncio
import random
from collections.abc import Callable

from radixgate.errors import WorkerFailed
from radixgate.gateway.asking.prompt_tokens import ServedModel
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.attempt.attempt import Attempt, Downstream, FrontRequest
from radixgate.gateway.upstream.attach import AttachStream
from radixgate.gateway.workers.grpc_attempt import GrpcAttempt
from radixgate.proto.generation import AnswerContext


class GrpcWorkerClient:
    """A `WorkerClient`. Knows its live attempts, so that an order can abort one by its rid."""

    def __init__(
        self,
        stream: AttachStream,
        *,
        served: Callable[[], ServedModel],
        wall_clock: Callable[[], float],
        rng: random.Random,
        new_rid: Callable[[], str],
        on_close: Callable[[], None],
    ) -> None:
        """`served` is asked once a request: a worker may come back with another model.
        `rng` draws the seeds of requests that bring none."""
        self._stream = stream
        self._served = served
        self._wall_clock = wall_clock
        self._rng = rng
        self._new_rid = new_rid
        self._on_close = on_close
        self._live: dict[GrpcAttempt, Downstream] = {}
        self._closed = False

    def start(self, request: FrontRequest, downstream: Downstream, number: int) -> Attempt:
        progress, generation = request.progress, request.generation
        assert progress is not None
        assert generation is not None
        served = self._served()
        context = AnswerContext(
            request_id=request.request_id,
            model=served.name,
            created=int(self._wall_clock()),
            token_bytes=served.encoder.tokenizer.shown_bytes,
            rids=generation.rids or [self._new_rid() for _ in generation.prompts],
        )
        progress.open(context, self._rng)
        attempt = GrpcAttempt(
            self._stream, downstream, progress, streamed=generation.stream, on_over=self._over
        )
        try:
            if self._closed:
                raise WorkerFailed("the worker was removed")
            attempt.begin(self._new_rid, number)
        except WorkerFailed as error:
            # No callback may come before this returns.
            asyncio.get_running_loop().call_soon(attempt.on_lost, error)
        self._live[attempt] = downstream
        return attempt

    def abort(self, order: AbortOrder) -> int:
        """End the live requests it means; how many prompts that were."""
        return sum(attempt.abort(order) for attempt in list(self._live))

    def runs(self, order: AbortOrder) -> bool:
        """A prompt that it means has not ended."""
        return any(attempt.runs(order) for attempt in self._live)

    def close(self) -> None:
        self._closed = True
        for attempt, downstream in list(self._live.items()):
            attempt.cancel()
            downstream.on_failure(WorkerFailed("the worker was removed"))
        self._on_close()

    def _over(self, attempt: GrpcAttempt) -> None:
        self._live.pop(attempt, None)
