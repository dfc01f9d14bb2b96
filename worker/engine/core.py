"""The engine without its thread: commands go in, steps are made, a delivery comes out."""

import logging
from collections.abc import Sequence

from radixgate.clock import Clock
from radixgate.errors import NoWorkerAvailable, QueueFull, RadixgateError
from radixgate.log import fields
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.engine.endings import Endings
from radixgate.worker.engine.idle_check import IdleCheck
from radixgate.worker.engine.replies import Replies
from radixgate.worker.engine.stats import EngineStats, EngineTally
from radixgate.worker.requests.intake import Intake
from radixgate.worker.requests.live_requests import LiveRequests
from radixgate.worker.requests.outbox import Delivery, Sink, StepOutbox
from radixgate.worker.requests.output import LENGTH
from radixgate.worker.requests.sequence import Phase, Request, TokenSequence
from radixgate.worker.schedule.chunks import Chunk
from radixgate.worker.schedule.kv_changes import KvChanges
from radixgate.worker.schedule.kv_memory import KvMemory
from radixgate.worker.schedule.scheduler import Scheduler
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.steps.passes import PassOutcome, Scores
from radixgate.worker.steps.pipeline import Pipeline
from radixgate.worker.steps.sampler import Draw

_log = logging.getLogger(__name__)


class EngineCore:
    """One replica of the model. Not thread-safe: its owner calls one method at a time.

    Nothing a request does can stop it: an error in one request's path ends that request, a failed
    forward pass ends the requests that were in it.
    """

    def __init__(
        self,
        config: EngineConfig,
        *,
        intake: Intake,
        scheduler: Scheduler,
        memory: KvMemory,
        changes: KvChanges,
        pipeline: Pipeline,
        clock: Clock,
    ) -> None:
        self._config = config
        self._intake = intake
        self._scheduler = scheduler
        self._memory = memory
        self._changes = changes
        self._pipeline = pipeline
        self._clock = clock
        self._live = LiveRequests()
        self._outbox = StepOutbox()
        self._replies = Replies(self._outbox, clock, config)
        self._tally = EngineTally()
        self._endings = Endings(scheduler, changes, self._live, self._replies, self._tally, clock)
        self._idle_check = IdleCheck(memory, changes, self._tally)
        self._idle = True

    # ------------------------------------------------------------------ commands

    def submit(self, sink: Sink, submit: pb.Submit) -> None:
        """Take up a request, or answer it with a refusal."""
        try:
            self._accept(sink, submit)
        except RadixgateError as error:
            self._refuse(sink, submit, error)
        except Exception as exc:
            _log.error("a submit failed", exc_info=exc, extra=fields(rid=submit.rid))
            failure = RadixgateError(f"the worker failed to take the request up: {exc}")
            self._refuse(sink, submit, failure)

    def add_credit(self, sink: Sink, handle: int, tokens: int) -> None:
        """Harmless for a request that has ended."""
        request = self._live.find(sink, handle)
        if request is not None:
            request.credit += tokens

    def abort(self, sink: Sink, handle: int, message: str) -> None:
        """End a request in whatever state it is, with reason ABORT. Harmless if it has ended."""
        request = self._live.find(sink, handle)
        if request is not None:
            self._endings.abort(request, message)

    def abort_all(self, message: str) -> None:
        for request in self._live:
            self._endings.abort(request, message)

    def _fail_all(self, error: RadixgateError) -> None:
        for request in self._live:
            self._endings.fail(request, error)

    def detach(self, sink: Sink) -> None:
        """The sink has left: its requests end, and nothing is said any more."""
        for request in self._live.leave(sink):
            self._endings.abort(request, "the receiver has left")
        self._outbox.forget(sink)

    def flush(self) -> tuple[bool, str]:
        """Drop every cached prefix, if nobody runs or waits. Whether it was done, and a message."""
        running, waiting = len(self._scheduler.running), self._scheduler.waiting_in_all
        if running or waiting:
            return False, f"{running} running and {waiting} waiting; a flush needs an idle worker"
        self._memory.flush()
        self._changes.cleared()
        return True, "the prefix cache was dropped"

    # ------------------------------------------------------------------ steps

    def step(self) -> bool:
        """Compute the next tokens of whoever is next. False: nobody can go on by now.

        With overlap a step only begins them, and says what the one before it has brought: this is
        planned while that is computed, and said while this is.
        """
        self._abort_overdue()
        self._pipeline.plan(self._schedule())
        if self._pipeline.empty:
            return self._gave_up_somebody()
        self._idle = False
        finished = self._pipeline.wait()
        if finished.error is not None:
            self._step_failed(finished.chunks, finished.error)
        self._pipeline.go_on()
        if finished.outcome is not None:
            self._came(finished.chunks, finished.outcome)
        self._pipeline.sample()
        return True

    def recover(self, exc: Exception) -> None:
        """After an error that came out of another method: end all requests and look around.

        Raises AssertionError if anything is left that does not agree; then there is no going on.
        """
        self._pipeline.drop()
        self._fail_all(RadixgateError(f"the engine failed: {exc}"))
        self.check()

    def close(self) -> None:
        """The worker stops: end all requests, and compute nothing more."""
        self._pipeline.drop()
        self._fail_all(NoWorkerAvailable("the worker is stopping"))

    def take(self) -> Delivery | None:
        """What is to be told since the last call; None: nothing."""
        cleared, events = self._changes.take()
        return self._outbox.take(events, cleared=cleared)

    def next_deadline_s(self) -> float | None:
        """When `step` must be called again though nothing else happens; None: never."""
        return self._live.next_deadline_s()

    def stats(self) -> EngineStats:
        """O(sinks)."""
        return self._tally.stats(
            self._memory,
            running=len(self._scheduler.running),
            waiting=self._scheduler.waiting_in_all,
            queued_uncached_by_sink=self._scheduler.owed,
            seen_by_sink=self._live.seen,
            retractions_total=self._scheduler.retractions_total,
        )

    def check(self) -> None:
        """Every page, lock, count and state agrees. O(everything)."""
        self._scheduler.check()
        sequences = [sequence for request in self._live for sequence in request.sequences]
        by_phase = {phase: sum(s.phase is phase for s in sequences) for phase in Phase}
        assert by_phase[Phase.RUNNING] == len(self._scheduler.running), "runs unknown to us"
        assert by_phase[Phase.WAITING] == len(self._scheduler.waiting), "waits unknown to us"
        assert by_phase[Phase.HELD] == self._scheduler.held, "held choices are miscounted"
        assert not any(request.finished for request in self._live), "lives on after its end"

    # ------------------------------------------------------------------ a step's way

    def _schedule(self) -> Sequence[Chunk]:
        chunks, admitted = self._scheduler.schedule()
        for sequence in admitted:
            self._admitted(sequence)
        return chunks

    def _came(self, chunks: Sequence[Chunk], outcome: PassOutcome) -> None:
        self._tally.stepped(chunks, outcome.seconds)
        self._scheduler.took(chunks, outcome.seconds)
        for chunk, scores in zip(chunks, outcome.scored, strict=True):
            if not chunk.holds:
                self._scheduler.void(chunk)
                continue
            self._score(chunk, scores)
            self._computed(chunk)
        for chunk in chunks:
            if chunk.samples and chunk.holds:
                self._drawn(chunk.sequence, outcome.draws[chunk.sequence])

    # ------------------------------------------------------------------ one request's way

    def _accept(self, sink: Sink, submit: pb.Submit) -> None:
        request = self._intake.request(sink, submit)
        limit = self._config.max_queued_requests
        waiting = self._scheduler.waiting_in_all
        if waiting + len(request.sequences) > limit + self._scheduler.free_rows:
            raise QueueFull(f"{waiting} requests wait already, at most {limit} may")
        self._tally.requests += 1
        self._live.add(request)
        self._scheduler.hold(request.sequences)
        for sequence in request.sequences:
            end = sequence.begin()
            if end is not None:
                self._endings.end(sequence, end)
        first = request.sequences[0]
        if first.phase is Phase.HELD:
            self._changes.announce(request, self._memory)
            self._scheduler.add(first)

    def _refuse(self, sink: Sink, submit: pb.Submit, error: RadixgateError) -> None:
        self._tally.refused += 1
        self._outbox.refuse(sink, submit.handle, error)
        self._outbox.end(sink, submit.handle)

    def _admitted(self, sequence: TokenSequence) -> None:
        if sequence.admitted_s is not None:
            return
        sequence.admitted_s = self._clock.now()
        # The first choice stands for the request: the others find what it has computed.
        if sequence is sequence.request.sequences[0]:
            self._tally.admitted(sequence.request, sequence.admitted_s)

    def _score(self, chunk: Chunk, scores: Scores) -> None:
        if not chunk.scored:
            return
        request = chunk.sequence.request
        if isinstance(scores, Exception):
            self._request_failed(request, scores)
            return
        self._replies.scored(chunk.sequence, scores)
        request.unscored = chunk.scored.stop

    def _computed(self, chunk: Chunk) -> None:
        sequence = chunk.sequence
        if not chunk.holds:
            return  # it has failed in this very step
        self._scheduler.computed(chunk)
        if not chunk.prefill or sequence.prefilling:
            return
        request = sequence.request
        self._changes.settle(request)
        for other in request.sequences:
            if other.phase is Phase.HELD:
                self._scheduler.add(other)
        if request.scoring:
            self._endings.end(sequence, LENGTH)

    def _drawn(self, sequence: TokenSequence, draw: Draw | Exception) -> None:
        if isinstance(draw, Exception):
            self._request_failed(sequence.request, draw)
            return
        self._tally.generated(sequence, self._clock.now())
        try:
            text, end = sequence.append(draw.token_id)
            self._replies.token(sequence, draw, text, end)
        except Exception as exc:
            self._request_failed(sequence.request, exc)
            return
        if end is not None:
            self._endings.leave(sequence)

    # ------------------------------------------------------------------ when things go wrong

    def _abort_overdue(self) -> None:
        for request in self._live.overdue(self._clock.now()):
            self._endings.abort(request, "its deadline has passed")

    def _request_failed(self, request: Request, exc: Exception) -> None:
        _log.error("a request failed", exc_info=exc, extra=fields(rid=request.rid))
        self._endings.fail(request, RadixgateError(f"the worker failed on this request: {exc}"))

    def _step_failed(self, chunks: Sequence[Chunk], exc: Exception) -> None:
        _log.error("a forward pass failed", exc_info=exc, extra=fields(chunks=len(chunks)))
        self._tally.failed_steps += 1
        for request in {chunk.sequence.request: None for chunk in chunks}:
            self._endings.fail(request, RadixgateError(f"the forward pass it was in failed: {exc}"))

    def _gave_up_somebody(self) -> bool:
        """Nobody could go on. That is fine, unless somebody waits for pages that nobody has."""
        scheduler = self._scheduler
        if not scheduler.running and scheduler.waiting.anyone_ready():
            # Whoever fits into the empty pool is admitted to it, and others were refused.
            (stuck,) = scheduler.waiting.in_order(1)
            self._request_failed(stuck.request, RuntimeError("it fits into no idle worker"))
            return True
        if not self._idle and not scheduler.running and not scheduler.waiting_in_all:
            self._idle = True
            self._idle_check.run()
            if self._config.debug_checks:
                self.check()
        return False
