"""One request on its way: read, asked of the fleet, tried at workers, and ended exactly once."""

import asyncio

from radixgate.errors import RadixgateError
from radixgate.fleet.fleet import Outcome
from radixgate.gateway.asking.question import Question
from radixgate.gateway.asking.salted_body import salted_body
from radixgate.gateway.attempt.aborted_answer import aborted_answer
from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.exchange.admission import OPEN, Admission
from radixgate.gateway.exchange.attempts import Attempts
from radixgate.gateway.exchange.to_workers import to_workers
from radixgate.gateway.heads.request_head import RequestHead


class Exchange(Attempts):
    """An `Attempt` to the front door."""

    __slots__ = ("_admission", "_head")

    def begin(self, head: RequestHead, body: bytes, admission: Admission) -> None:
        """Once. Callbacks may come before it returns."""
        core, arrived_at = self._core, admission.arrived_at
        self._head, self.body, self._admission = head, body, admission
        self._answer.started_at = core.clock.now() if arrived_at is None else arrived_at
        core.deadlines.watch(self)
        core.turn.then(self._read)

    # ------------------------------------------------------------ from the front door

    def cancel(self) -> None:
        """The client has left."""
        if self._answer.ended:
            return
        try:
            self._wait_no_more()
            self._end_attempt(Outcome.ABORTED)
            if self._attempt is not None:
                self._attempt.cancel()
            self._over(None)
            self._answer.leave()
        except Exception:
            self._fail_inside()

    def abort(self) -> None:
        """By order, while no worker has it."""
        try:
            self._wait_no_more()
            self._end_aborted()
        except Exception:
            self._fail_inside()

    # ------------------------------------------------------------ the question

    def _read(self) -> None:
        if self._answer.ended:
            return  # the client has left in the same turn
        try:
            question = self._core.asking.read(self._head.path, self.body, self._admission.caller)
            if question is None:
                self._wait(asyncio.get_running_loop().create_task(self._read_own()))
            else:
                caller = self._admission.caller
                self._ask(question, salted_body(self.body, caller) if caller.salted else self.body)
        except RadixgateError as error:
            self._fail(error)
        except Exception:
            self._fail_inside()

    async def _read_own(self) -> None:
        caller = self._admission.caller
        try:
            asking = self._core.asking
            question = await asking.read_own(self._head.path, self.body, caller)
            body = await asking.salted(self.body, caller) if caller.salted else self.body
        except RadixgateError as error:
            self._fail(error)
        except Exception:
            self._fail_inside()
        else:
            self._ask(question, body)

    def _ask(self, question: Question, body: bytes) -> None:
        """`body`: as workers are to see it."""
        self._question = question
        self._request = to_workers(self._head, body, question, self._answer.request_id, self._core)
        self._core.turn.then(self._dispatch)

    # ------------------------------------------------------------ the end

    def _over(self, counts: AnswerCounts | None) -> None:
        self._core.deadlines.forget(self)
        admission, self._admission = self._admission, OPEN
        admission.over(counts, self)

    def _end_aborted(self) -> None:
        self._over(None)
        ending = aborted_answer(self._head.path, self.body, self._answer.request_id, self._progress)
        self._answer.end_aborted(ending, self.delivered())

    def _fail(self, error: RadixgateError) -> None:
        self._over(None)
        if self._waiting is not None:
            self._core.held.leave(self)
        self._answer.give_up(error)
