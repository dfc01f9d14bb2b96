"""What a fault of ours does to a request: its client gets one error, and nothing of it is kept.

All that others call of a request stands here, and nets stand nowhere else: who calls has other
requests to serve, so none of it raises, and none of it does anything once the request is over.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from radixgate.errors import InternalFault, RadixgateError
from radixgate.fleet.fleet import Outcome
from radixgate.gateway.attempt.attempt import AnswerCounts, Headers, WholeHead
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.attempt.stand_in import StandIn
from radixgate.gateway.exchange.client_answer import ClientAnswer
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.loop.deadlines import NEVER

_log = logging.getLogger(__name__)


class FaultNet(StandIn, ABC):
    """An `Attempt` to the front door, a `Downstream` of attempts, a `Holder` and a `Watched`."""

    __slots__ = ("_answer", "_core", "deadline")

    # Set by its owner: a call less for every request.
    _answer: ClientAnswer
    _core: Core
    deadline: float

    # ------------------------------------------------------------ from the worker

    def on_head(self, status: int, headers: Headers) -> None:
        answer = self._answer
        if answer.ended:
            return
        try:
            answer.hold(status, headers)
        except Exception:
            self.fail_inside()

    def on_body(self, data: bytes) -> None:
        if self._answer.ended:
            return
        try:
            self._brought(data)
        except Exception:
            self.fail_inside()

    def on_begin(self, head: WholeHead, own: bytes, body: bytes) -> None:
        if self._answer.ended:
            return
        try:
            self._began(head, body)
        except Exception:
            self.fail_inside()

    def lane(self) -> ChunkLane | None:
        if self._answer.ended:
            return None
        try:
            return self._answer.lane()
        except Exception:
            self.fail_inside()
            return None

    def on_answer(self, head: WholeHead, own: bytes, body: bytes, counts: AnswerCounts) -> None:
        if self._answer.ended:
            return
        try:
            self.deadline = NEVER
            self._core.turn.then(partial(self._hand_on, head, body, counts))
        except Exception:
            self.fail_inside()

    def _hand_on(self, head: WholeHead, body: bytes, counts: AnswerCounts) -> None:
        if self._answer.ended:
            return  # the client has left in the same turn
        try:
            self._came_whole(head, body, counts)
        except Exception:
            self.fail_inside()

    def on_end(self, counts: AnswerCounts | None) -> None:
        if self._answer.ended:
            return
        try:
            self._ended(counts)
        except Exception:
            self.fail_inside()

    def on_failure(self, error: RadixgateError) -> None:
        if self._answer.ended:
            return
        try:
            self._failed(error)
        except Exception:
            self.fail_inside()

    # ------------------------------------------------------------ from the turn and the clock

    def read(self) -> None:
        """Find out what it asks for."""
        if self._answer.ended:
            return  # the client has left in the same turn
        try:
            self._read()
        except Exception:
            self.fail_inside()

    async def read_own(self) -> None:
        """The same, where that takes its time."""
        try:
            await self._read_own()
        except Exception:
            self.fail_inside()

    def dispatch(self) -> None:
        """Choose a worker for it."""
        if self._answer.ended:
            return  # the client has left in the same turn
        try:
            self._dispatch()
        except Exception:
            self.fail_inside()

    def start(self) -> None:
        """Begin the attempt that it has a lease for."""
        if self._answer.ended:
            return  # the client has left in the same turn
        try:
            self._start()
        except Exception:
            self.fail_inside()

    def on_deadline(self) -> None:
        if self._answer.ended:
            return
        try:
            self._late()
        except Exception:
            self.fail_inside()

    # ------------------------------------------------------------ from the front door, and orders

    def pause(self) -> None:
        try:
            super().pause()
        except Exception:
            self.fail_inside()

    def resume(self) -> None:
        try:
            super().resume()
        except Exception:
            self.fail_inside()

    def cancel(self) -> None:
        if self._answer.ended:
            return
        try:
            self._left()
        except Exception:
            self.fail_inside()

    def abort(self) -> None:
        """By order, while no worker has it."""
        if self._answer.ended:
            return
        try:
            self._aborted()
        except Exception:
            self.fail_inside()

    # ------------------------------------------------------------ to the owner

    @abstractmethod
    def _began(self, head: WholeHead, data: bytes) -> None: ...

    @abstractmethod
    def _brought(self, data: bytes) -> None: ...

    @abstractmethod
    def _came_whole(self, head: WholeHead, body: bytes, counts: AnswerCounts) -> None: ...

    @abstractmethod
    def _ended(self, counts: AnswerCounts | None) -> None: ...

    @abstractmethod
    def _failed(self, error: RadixgateError) -> None: ...

    @abstractmethod
    def _read(self) -> None: ...

    @abstractmethod
    async def _read_own(self) -> None: ...

    @abstractmethod
    def _dispatch(self) -> None: ...

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _late(self) -> None: ...

    @abstractmethod
    def _left(self) -> None: ...

    @abstractmethod
    def _aborted(self) -> None: ...

    @abstractmethod
    def _end_attempt(self, outcome: Outcome) -> None:
        """The one under way, if there is one, leaves the books."""
        ...

    @abstractmethod
    def _over(self, counts: AnswerCounts | None) -> None:
        """The request is over, but for what the client is still sent. More calls do nothing."""
        ...

    @abstractmethod
    def _fail(self, error: RadixgateError) -> None:
        """There is no answer, or no more of it."""
        ...

    # ------------------------------------------------------------ the net

    def fail_inside(self) -> None:
        """Called where a fault is caught. Raises nothing, whatever else fails."""
        _log.exception("a request failed")
        answer, error = self._answer, InternalFault()
        tell = answer.cut if answer.torn else self._fail
        if self._attempt is not None:
            works(self._attempt.cancel)
        works(partial(self._end_attempt, Outcome.REFUSED))
        works(partial(self._over, None))
        if not works(partial(tell, error)):
            works(partial(answer.cut, error))


def works(step: Callable[[], None]) -> bool:
    """One of several steps of an end: whatever becomes of it, the others are to be taken."""
    try:
        step()
    except Exception:
        _log.exception("nor could it be ended as it should")
        return False
    return True
