"""One request on its way: read, asked of the fleet, tried at workers, and ended exactly once."""

from radixgate.errors import EncodedBody, RadixgateError
from radixgate.fleet.fleet import Outcome
from radixgate.gateway.asking.question import Question
from radixgate.gateway.asking.salted_body import salted_body
from radixgate.gateway.attempt.aborted_answer import AbortedByOrder, aborted_answer
from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.exchange.admission import OPEN
from radixgate.gateway.exchange.attempts import Attempts
from radixgate.gateway.exchange.first_step import begun
from radixgate.gateway.exchange.to_workers import to_workers


class Exchange(Attempts):
    """An `Attempt` to the front door."""

    __slots__ = ()

    def begin(self) -> None:
        """Once. Callbacks may come before it returns. Whatever it raises is for `fail_inside`."""
        self._core.deadlines.watch(self)
        self._core.turn.then(self.read)

    # ------------------------------------------------------------ from the front door

    def _left(self) -> None:
        self._wait_no_more()
        self._end_attempt(Outcome.ABORTED)
        if self._attempt is not None:
            self._attempt.cancel()
        self._over(None)
        self._answer.leave()

    def _aborted(self) -> None:
        self._wait_no_more()
        self._end_aborted()

    # ------------------------------------------------------------ the question

    def _read(self) -> None:
        caller = self._admission.caller
        try:
            if self._head.encoding is not None:
                raise _encoded(self._head.encoding)
            question = self._core.asking.read(self._head.path, self.body, caller)
            if question is None:
                rest = begun(self.read_own())
                if rest is not None:
                    self._wait(rest)
            else:
                self._ask(question, salted_body(self.body, caller) if caller.salted else self.body)
        except RadixgateError as error:
            self._fail(error)

    async def _read_own(self) -> None:
        caller, asking = self._admission.caller, self._core.asking
        try:
            question = await asking.read_own(self._head.path, self.body, caller)
            body = await asking.salted(self.body, caller) if caller.salted else self.body
            self._ask(question, body)
        except RadixgateError as error:
            self._fail(error)

    def _ask(self, question: Question, body: bytes) -> None:
        """`body`: as workers are to see it."""
        self._question = question
        self._request = to_workers(self._head, body, question, self._answer.request_id, self._core)
        self._core.turn.then(self.dispatch)

    # ------------------------------------------------------------ the end

    def _over(self, counts: AnswerCounts | None) -> None:
        self._core.deadlines.forget(self)
        admission = self._admission
        if admission.gate is not None:
            self._admission = OPEN  # whatever fails, its place is given back once
            admission.over(counts, self)

    def _end_aborted(self) -> None:
        self._over(None)
        failure, answer = self._failure, self._answer
        broken = failure.broken if isinstance(failure, AbortedByOrder) else None
        path, progress = self._head.path, self._progress
        ending = aborted_answer(path, self.body, answer.request_id, progress, broken)
        answer.end_aborted(ending, self.delivered())

    def _fail(self, error: RadixgateError) -> None:
        self._over(None)
        if self._waiting is not None:
            self._core.held.leave(self)
        self._answer.give_up(error)


def _encoded(encoding: bytes) -> EncodedBody:
    return EncodedBody(
        f"the body is encoded as {encoding[:100].decode('latin-1')!r}, and the gateway reads it:"
        " send it as plain JSON, without a content-encoding (or with identity)",
        param="body",
        code="unsupported_content_encoding",
    )
