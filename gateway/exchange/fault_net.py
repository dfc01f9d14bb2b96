"""What a fault of ours does to a request: its client gets one error, and nothing of it is kept."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from radixgate.errors import RadixgateError
from radixgate.fleet.fleet import Outcome
from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.attempt.stand_in import StandIn
from radixgate.gateway.exchange.client_answer import ClientAnswer

_log = logging.getLogger(__name__)


class FaultNet(StandIn, ABC):
    """Callbacks of an attempt that raise nothing: who calls has other requests to serve."""

    __slots__ = ("_answer",)

    def __init__(self, answer: ClientAnswer) -> None:
        StandIn.__init__(self)
        self._answer = answer

    # ------------------------------------------------------------ caught here

    def on_end(self, counts: AnswerCounts | None) -> None:
        try:
            self._ended(counts)
        except Exception:
            self._fail_inside()

    def on_failure(self, error: RadixgateError) -> None:
        try:
            self._failed(error)
        except Exception:
            self._fail_inside()

    def on_deadline(self) -> None:
        try:
            self._late()
        except Exception:
            self._fail_inside()

    # ------------------------------------------------------------ to the owner

    @abstractmethod
    def _ended(self, counts: AnswerCounts | None) -> None: ...

    @abstractmethod
    def _failed(self, error: RadixgateError) -> None: ...

    @abstractmethod
    def _late(self) -> None: ...

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

    def _fail_inside(self) -> None:
        """Called where a fault is caught. Raises nothing, whatever else fails."""
        _log.exception("a request failed")
        answer, error = self._answer, RadixgateError("internal error; the log has the details")
        # Where its end has begun, nobody knows how far it came: only a cut is honest.
        tell = answer.cut if answer.ended else self._fail
        if self._attempt is not None:
            _tried(self._attempt.cancel)
        _tried(partial(self._end_attempt, Outcome.REFUSED))
        _tried(partial(self._over, None))
        if not _tried(partial(tell, error)):
            _tried(partial(answer.cut, error))


def _tried(step: Callable[[], None]) -> bool:
    try:
        step()
    except Exception:
        _log.exception("nor could it be ended as it should")
        return False
    return True
