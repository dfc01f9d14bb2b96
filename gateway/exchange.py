"""One request on its way: asked of the fleet, tried at workers, answered, and entered in the books.

Until the first byte of a body has gone to the client, a failed attempt is followed by another at
another worker and nobody sees it. After that nothing is repeated: an answer of our own workers
goes on at another from the tokens delivered; a foreign stream ends with one error event and
`[DONE]`, any other answer is cut, and no finish is made up.
"""

import asyncio
import logging

from radixgate.errors import RadixgateError, WorkerBusy, WorkerFailed
from radixgate.fleet.fleet import Lease, Outcome
from radixgate.gateway.aborted_answer import AbortedByOrder, aborted_answer
from radixgate.gateway.answer_progress import AnswerProgress
from radixgate.gateway.asking import Question
from radixgate.gateway.attempt import (
    AnswerCounts,
    Attempt,
    Downstream,
    FrontRequest,
    Headers,
    WholeHead,
)
from radixgate.gateway.caller import Caller
from radixgate.gateway.client_answer import ClientAnswer
from radixgate.gateway.core import Core
from radixgate.gateway.deadlines import NEVER
from radixgate.gateway.request_head import RequestHead
from radixgate.gateway.salted_body import salted_body
from radixgate.gateway.to_workers import to_workers

_log = logging.getLogger(__name__)
# A member is looked up by a function call each time; these two are met by every request.
_OK, _FAILED = Outcome.OK, Outcome.FAILED


class Exchange:
    """An `Attempt` to the front door, and the `Downstream` of each attempt at a worker."""

    __slots__ = (
        "_answer",
        "_attempt",
        "_caller",
        "_core",
        "_failure",
        "_head",
        "_last_attempt",
        "_lease",
        "_paused",
        "_question",
        "_request",
        "_request_id",
        "_silent_s",
        "_tried",
        "_waiting",
        "body",
        "deadline",
    )

    def __init__(
        self, core: Core, head: RequestHead, body: bytes, client: Downstream, caller: Caller
    ) -> None:
        self.deadline = NEVER
        self._core, self._head, self.body, self._caller = core, head, body, caller
        self._request_id = head.request_id or core.request_ids.make()
        self._answer = ClientAnswer(core, client, self._request_id, tells_worker=caller.admin)
        self._question: Question | None = None
        self._request: FrontRequest | None = None
        self._waiting: asyncio.Task[None] | asyncio.TimerHandle | None = None  # held meanwhile
        self._lease: Lease | None = None
        self._attempt: Attempt | None = None
        self._last_attempt: Attempt | None = None  # that has ended
        self._tried: list[str] = []
        self._failure: RadixgateError | None = None  # of the last attempt
        self._paused = False
        self._silent_s = 0.0  # how long the worker may be silent now

    # ------------------------------------------------------------ from the front door

    def begin(self, arrived_at: float | None) -> None:
        """What is timed begins when it arrived; None: now."""
        core = self._core
        self._answer.started_at = core.clock.now() if arrived_at is None else arrived_at
        core.deadlines.watch(self)
        try:
            question = core.asking.read(self._head.path, self.body, self._caller)
            if question is not None:
                self._ask(question)
                return
            core.held.enter(self)
            self._waiting = asyncio.get_running_loop().create_task(self._read_own())
        except RadixgateError as error:
            self._fail(error)
        except Exception:
            self._fail_inside()

    def pause(self) -> None:
        self._paused = True
        self.deadline = NEVER  # the silence is ours
        if self._attempt is not None:
            self._attempt.pause()

    def resume(self) -> None:
        self._paused = False
        if self._attempt is not None:
            self._be_patient(self._core.patience.idle_s)
            self._attempt.resume()

    def delivered(self) -> AnswerCounts | None:
        attempt = self._attempt or self._last_attempt
        return None if attempt is None else attempt.delivered()

    def cancel(self) -> None:
        """The client has left."""
        if self._answer.ended:
            return
        self._wait_no_more()
        attempt = self._attempt
        self._end_attempt(Outcome.ABORTED)
        if attempt is not None:
            attempt.cancel()
        self._core.deadlines.forget(self)
        self._answer.leave()

    def abort(self) -> None:
        """By order, while no worker has it."""
        self._wait_no_more()
        self._end_aborted()

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._core.held.leave(self)

    # ------------------------------------------------------------ from the worker

    def on_head(self, status: int, headers: Headers) -> None:
        self._answer.hold(status, headers)

    def on_body(self, data: bytes) -> None:
        now = self._core.clock.now()
        self._silent_s = self._core.patience.idle_s
        self.deadline = NEVER if self._paused else now + self._silent_s
        if self._answer.add(data, now) and self._lease is not None:
            self._lease.first_output()

    def on_answer(self, head: WholeHead, own: bytes, body: bytes, counts: AnswerCounts) -> None:
        if self._lease is not None:
            self._lease.first_output()
        self._end_attempt(_OK, counts)
        self._core.deadlines.forget(self)
        self._answer.end_at_once(head, body, counts)

    def on_end(self, counts: AnswerCounts | None) -> None:
        held = self._answer.held
        assert held is not None
        if held.ok:
            self._end_attempt(_OK, counts)
        elif held.status < 500 and not held.retriable:
            self._end_attempt(Outcome.REFUSED)
        else:
            # It answered, with an error of its own: that alone does not make it suspect.
            if held.retry_after_s:
                self._core.choice.rest(self._tried[-1], held.retry_after_s)
            self._end_attempt(Outcome.FAILED, busy=held.busy)
            if held.retriable and self._try_again():
                return
        self._core.deadlines.forget(self)
        self._answer.end(counts)

    def on_failure(self, error: RadixgateError) -> None:
        self._failure = error
        if isinstance(error, WorkerFailed):
            self._end_attempt(Outcome.FAILED, busy=isinstance(error, WorkerBusy))
            self._core.on_worker_failed(self._tried[-1])
            if self._try_again():
                return
        else:
            self._end_attempt(Outcome.REFUSED if error.status < 500 else Outcome.FAILED)
        by_order = isinstance(error, AbortedByOrder)  # before it was sent
        if by_order or (self._progress is not None and self._progress.ended_by_order):
            self._end_aborted()
        else:
            self._fail(error)

    def on_deadline(self) -> None:
        self.deadline = NEVER
        if self._attempt is None:
            return
        self._attempt.cancel()
        self.on_failure(WorkerFailed(f"{self._tried[-1]} sent nothing for {self._silent_s:g} s"))

    # ------------------------------------------------------------ attempts

    async def _read_own(self) -> None:
        try:
            question = await self._core.asking.read_own(self._head.path, self.body, self._caller)
        except RadixgateError as error:
            self._fail(error)
        except Exception:
            self._fail_inside()
        else:
            self._ask(question)

    def _ask(self, question: Question) -> None:
        self._question = question
        body = salted_body(self.body, self._caller) if self._caller.salted else self.body
        self._request = to_workers(self._head, body, question, self._request_id, self._core)
        self._dispatch()

    def _dispatch(self) -> None:
        core, question, request = self._core, self._question, self._request
        assert question is not None
        assert request is not None
        if self._waiting is not None:
            self._waiting = None
            core.held.leave(self)
        begun = request.begun
        try:
            lease = self._lease = core.choice.lease(question.ask, self._tried, own_only=begun)
            worker_id = lease.worker.id
            self._tried.append(worker_id)
            if not begun:
                self._answer.held = None
            core.metrics.dispatched(lease.choice.branch, lease.stake.predicted_cached_tokens)
            self._answer.asked(lease, self._be_patient(core.patience.first_byte_s))
            self._attempt = core.clients[worker_id].start(request, self, lease.number)
        except RadixgateError as error:
            self._no_worker(error)
            return
        except Exception:
            self._fail_inside()
            return
        if self._paused:
            self.pause()

    @property
    def _progress(self) -> AnswerProgress | None:
        return None if self._request is None else self._request.progress

    def _try_again(self) -> bool:
        """Arrange for another attempt; False: nobody can go on from here, or enough have tried."""
        core, question = self._core, self._question
        assert question is not None
        wait_s = core.another_try.wait_s(
            self._tried, question.ask.model, self._progress, sent=self._answer.sent
        )
        if wait_s is None:
            return False
        self._waiting = asyncio.get_running_loop().call_later(wait_s, self._dispatch)
        core.held.enter(self)
        return True

    def _end_attempt(
        self, outcome: Outcome, counts: AnswerCounts | None = None, *, busy: bool = False
    ) -> None:
        self.deadline, self._attempt, self._last_attempt = NEVER, None, self._attempt
        lease, self._lease = self._lease, None
        if lease is None:
            return
        lease.close(outcome, None if counts is None else counts.cached)
        question = self._question
        if counts is not None and question is not None and question.stores:
            self._core.stored.keep(counts.response_id, lease.worker.id, self._caller.tenant)
        self._core.choice.ended(lease, outcome, busy=busy)
        if outcome is _FAILED:
            self._core.metrics.worker_failed(lease.worker.id)

    def _be_patient(self, seconds: float) -> float:
        now = self._core.clock.now()
        self._silent_s, self.deadline = seconds, now + seconds
        return now

    # ------------------------------------------------------------ the end

    def _no_worker(self, error: RadixgateError) -> None:
        """Nobody is left to ask: what the last attempt brought is the answer."""
        if self._answer.held is None or (self._request is not None and self._request.begun):
            self._fail(self._failure or error)
            return
        self._core.deadlines.forget(self)
        self._answer.end(None)

    def _fail_inside(self) -> None:
        """A fault of ours; called where it is caught. The client is not left waiting for it."""
        _log.exception("a request failed")
        self._end_attempt(Outcome.REFUSED)
        self._fail(RadixgateError("internal error; the log has the details"))

    def _end_aborted(self) -> None:
        self._core.deadlines.forget(self)
        ending = aborted_answer(self._head.path, self.body, self._request_id, self._progress)
        self._answer.end_aborted(ending, self.delivered())

    def _fail(self, error: RadixgateError) -> None:
        self._core.deadlines.forget(self)
        if self._waiting is not None:
            self._core.held.leave(self)
        self._answer.give_up(error)
