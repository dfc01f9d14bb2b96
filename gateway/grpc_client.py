"""Attempts at one worker of ours, all over its one stream."""

import asyncio
import random
from collections.abc import Callable

from radixgate.errors import WorkerFailed
from radixgate.gateway.attach import AttachStream
from radixgate.gateway.attempt import Attempt, Downstream, FrontRequest
from radixgate.gateway.grpc_attempt import GrpcAttempt, submits_for
from radixgate.gateway.prompt_tokens import ServedModel
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
        on_close: Callable[[], None],
    ) -> None:
        """`served` is asked once a request: a worker may come back with another model."""
        self._stream = stream
        self._served = served
        self._wall_clock = wall_clock
        self._rng = rng
        self._on_close = on_close
        self._live: dict[GrpcAttempt, Downstream] = {}
        self._closed = False

    def start(self, request: FrontRequest, downstream: Downstream) -> Attempt:
        assert request.generation is not None
        assert request.prompt is not None
        served = self._served()
        context = AnswerContext(
            request_id=request.request_id,
            model=served.name,
            created=int(self._wall_clock()),
            token_bytes=served.encoder.tokenizer.shown_bytes,
            rids=request.generation.rids,
        )
        attempt = GrpcAttempt(self._stream, downstream, request, context, self._over)
        prompts = [ids.tobytes() for ids in request.prompt.prompts]
        submits = submits_for(request.generation, prompts, self._rng, self._new_rid)
        try:
            if self._closed:
                raise WorkerFailed("the worker was removed")
            attempt.begin(submits)
        except WorkerFailed as error:
            # No callback may come before this returns.
            asyncio.get_running_loop().call_soon(attempt.on_lost, error)
        self._live[attempt] = downstream
        return attempt

    def abort(self, rid: str | None) -> int:
        """End the live request of this rid, or all of them; how many prompts that were."""
        return sum(attempt.abort(rid) for attempt in list(self._live))

    def close(self) -> None:
        self._closed = True
        for attempt, downstream in list(self._live.items()):
            attempt.cancel()
            downstream.on_failure(WorkerFailed("the worker was removed"))
        self._on_close()

    def _over(self, attempt: GrpcAttempt) -> None:
        self._live.pop(attempt, None)

    def _new_rid(self) -> str:
        return f"{self._rng.getrandbits(128):032x}"
