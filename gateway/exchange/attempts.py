"""The attempts of one request at workers, one after the other, until one of them is its answer.

Until the first byte of a body has gone to the client, a failed attempt is followed by another at
another worker and nobody sees it. After that nothing is repeated: an answer of our own workers
goes on at another from the tokens delivered; a foreign stream ends with one error event and
`[DONE]`, any other answer is cut, and no finish is made up.
"""

import asyncio
from abc import abstractmethod

from radixgate.errors import InternalFault, RadixgateError, WorkerBusy, WorkerFailed
from radixgate.fleet.fleet import Lease, Outcome
from radixgate.gateway.asking.question import Question
from radixgate.gateway.attempt.aborted_answer import AbortedByOrder
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.gateway.attempt.attempt import AnswerCounts, FrontRequest, WholeHead
from radixgate.gateway.choice.retries import RETRIABLE_STATUSES, is_busy
from radixgate.gateway.exchange.admission import Admission
from radixgate.gateway.exchange.client_answer import ClientAnswer
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.exchange.fault_net import FaultNet
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.loop.deadlines import NEVER

# A member is looked up by a function call each time; these are met by every request.
_OK, _FAILED = Outcome.OK, Outcome.FAILED


class Attempts(FaultNet):
    """What each attempt brings. What its end means to the request, its owner knows."""

    __slots__ = (
        "_admission",
        "_failure",
        "_head",
        "_lease",
        "_question",
        "_request",
        "_silent_s",
        "_started",
        "_tried",
        "_waiting",
        "body",
    )

    def __init__(
        self,
        core: Core,
        answer: ClientAnswer,
        head: RequestHead,
        body: bytes,
        admission: Admission,
    ) -> None:
        super().__init__()
        self.deadline = NEVER
        self.body = body  # as it came
        self._answer = answer
        self._core = core
        self._head = head
        self._admission = admission
        self._question: Question | None = None
        self._request: FrontRequest | None = None
        self._waiting: asyncio.Task[None] | asyncio.TimerHandle | None = None  # held meanwhile
        self._lease: Lease | None = None  # while an attempt runs, or is about to
        self._started: Lease | None = None  # of the attempt that was begun last
        self._tried: list[str] = []  # workers, each of which has failed
        self._failure: RadixgateError | None = None  # of the last attempt
        self._silent_s = 0.0  # how long the worker may be silent now

    # ------------------------------------------------------------ to the owner

    @abstractmethod
    def _end_aborted(self) -> None:
        """It ends by order."""
        ...

    # ------------------------------------------------------------ from the front door

    def pause(self) -> None:
        self.deadline = NEVER  # the silence is ours
        super().pause()

    def resume(self) -> None:
        if self._lease is not None:
            self._silent_s = self._core.patience.idle_s
            self.deadline = self._core.clock.now() + self._silent_s
        super().resume()

    # ------------------------------------------------------------ from the worker

    def _began(self, head: WholeHead, data: bytes) -> None:
        if self._answer.begin(head, data, self._heard()) and self._lease is not None:
            self._lease.first_output()

    def _brought(self, data: bytes) -> None:
        if self._answer.add(data, self._heard()) and self._lease is not None:
            self._lease.first_output()

    def _heard(self) -> float:
        """When: now. The next silence begins."""
        now = self._core.clock.now()
        self._silent_s = self._core.patience.idle_s
        self.deadline = NEVER if self._paused else now + self._silent_s
        return now

    def _came_whole(self, head: WholeHead, body: bytes, counts: AnswerCounts) -> None:
        if self._lease is not None:
            self._lease.first_output()
        self._end_attempt(_OK, counts)
        self._over(counts)
        self._answer.end_at_once(head, body, counts)

    def _ended(self, counts: AnswerCounts | None) -> None:
        held, lease = self._answer.held, self._lease
        assert held is not None
        assert lease is not None
        # A stream may have ended with an error event, which counts as an answer of its status.
        status = (0 if counts is None else counts.error_status) or held.status
        if 200 <= status < 300:
            self._end_attempt(_OK, counts)
        elif status < 500 and status not in RETRIABLE_STATUSES:
            self._end_attempt(Outcome.REFUSED, counts)
        elif self._ended_by_order(status):
            return
        else:
            # It answered, with an error of its own: that alone does not make it suspect.
            if held.retry_after_s:
                self._core.choice.rest(lease.worker.id, held.retry_after_s)
            self._end_attempt(_FAILED, counts, busy=is_busy(status))
            if held.retriable and self._try_again():
                return
        self._over(counts)
        self._answer.end(counts)

    def _ended_by_order(self, status: int) -> bool:
        """An error whose worker was told to end it between its head and its end; part of it, once
        the client has that, is better off whole."""
        if self._answer.sent:
            return False
        error = self.ends_as(WorkerFailed(f"it answered with status {status}"))
        if not isinstance(error, AbortedByOrder):
            return False
        self._failed(error)
        return True

    def _failed(self, error: RadixgateError) -> None:
        lease, self._failure = self._lease, error
        assert lease is not None
        if isinstance(error, WorkerFailed):
            self._end_attempt(_FAILED, busy=isinstance(error, WorkerBusy))
            self._core.on_worker_failed(lease.worker.id)
            if error.rest_s:
                self._core.another_try.rest_by_fault(lease.worker.id, error.rest_s)
            if not self._answer.sent and (self._progress is None or not self._progress.begun):
                self._answer.held = None  # half of it is none, also where nobody else can be asked
            if self._try_again():
                return
        else:
            neutral = error.status < 500 or isinstance(error, InternalFault)
            self._end_attempt(Outcome.REFUSED if neutral else _FAILED)
        by_order = isinstance(error, AbortedByOrder)  # unsent, or of a foreign worker
        if by_order or (self._progress is not None and self._progress.ended_by_order):
            self._end_aborted()
        else:
            self._fail(error)

    def _late(self) -> None:
        # What goes by the lane does not move it.
        self.deadline = self._answer.lane_used_at + self._silent_s
        if self.deadline > self._core.clock.now():
            return
        self.deadline = NEVER
        lease, attempt = self._lease, self._attempt
        if lease is None or lease is not self._started or attempt is None:
            return
        error = attempt.ends_as(
            WorkerFailed(f"{lease.worker.id} sent nothing for {self._silent_s:g} s")
        )
        attempt.cancel()
        self._failed(error)

    # ------------------------------------------------------------ one after the other

    def _dispatch(self) -> None:
        core, question, request, answer = self._core, self._question, self._request, self._answer
        assert question is not None
        assert request is not None
        if self._waiting is not None:
            self._waiting = None
            core.held.leave(self)
        progress = request.progress
        begun = progress is not None and progress.begun
        try:
            lease = self._lease = core.choice.lease(question.ask, self._tried, own_only=begun)
            if not begun:
                answer.held = None
            core.metrics.dispatched(lease.choice.branch, lease.stake.predicted_cached_tokens)
            answer.lease, answer.asked_at = lease, core.clock.now()
            self._silent_s = core.patience.first_byte_s
            self.deadline = answer.asked_at + self._silent_s
        except RadixgateError as error:
            self._no_worker(error)
        else:
            core.turn.then(self.start)

    def _start(self) -> None:
        lease, request = self._lease, self._request
        if lease is None or lease is self._started:
            return  # another attempt has begun since
        assert request is not None
        self._started = lease
        self._attempt = self._core.clients[lease.worker.id].start(request, self, lease.number)
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
            self._tried, question.ask, self._progress, sent=self._answer.sent
        )
        if wait_s is None:
            return False
        # Leased and begun in one turn: in between, the worker could be removed.
        then, dispatch = core.turn.then, self.dispatch
        self._wait(asyncio.get_running_loop().call_later(wait_s, then, dispatch))
        return True

    def _wait(self, waiting: asyncio.Task[None] | asyncio.TimerHandle) -> None:
        """It goes on by this; until then it can be ended by order."""
        self._waiting = waiting
        self._core.held.enter(self)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._core.held.leave(self)

    def _end_attempt(
        self, outcome: Outcome, counts: AnswerCounts | None = None, *, busy: bool = False
    ) -> None:
        self.deadline, core = NEVER, self._core
        lease, self._lease = self._lease, None
        if lease is None:
            return
        lease.close(outcome, None if counts is None else counts.cached)
        question = self._question
        if counts is not None and question is not None and question.stores:
            core.stored.keep(counts.response_id, lease.worker.id, question.ask.tenant)
        core.choice.ended(lease, outcome, busy=busy)
        if outcome is _FAILED:
            self._tried.append(lease.worker.id)
            core.metrics.worker_failed(lease.worker.id)

    def _no_worker(self, error: RadixgateError) -> None:
        """Nobody is left to ask: what the last attempt brought is the answer."""
        progress = self._progress
        if self._answer.held is None or (progress is not None and progress.begun):
            self._fail(self._failure or error)
            return
        self._over(None)
        self._answer.end(None)
