"""An attempt, for the front door, that may not have begun: a pause reaches it once it has."""

from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.attempt import AnswerCounts, Attempt


class StandIn:
    """Half of an `Attempt`; how it is cancelled is for who knows what has to be given back."""

    __slots__ = ("_attempt", "_paused")

    def __init__(self) -> None:
        self._attempt: Attempt | None = None  # None: it has not begun, or has ended
        self._paused = False

    def _stand_for(self, attempt: Attempt) -> None:
        self._attempt = attempt
        if self._paused:
            attempt.pause()

    def pause(self) -> None:
        self._paused = True
        if self._attempt is not None:
            self._attempt.pause()

    def resume(self) -> None:
        self._paused = False
        if self._attempt is not None:
            self._attempt.resume()

    def delivered(self) -> AnswerCounts | None:
        return None if self._attempt is None else self._attempt.delivered()

    def ends_as(self, error: RadixgateError) -> RadixgateError:
        return error if self._attempt is None else self._attempt.ends_as(error)
