"""A pause of the reader reaches the attempt, also if it came before there was one."""

from radixgate.errors import RadixgateError, WorkerFailed
from radixgate.gateway.attempt.attempt import AnswerCounts, Attempt
from radixgate.gateway.attempt.stand_in import StandIn


class Steered:
    """An attempt that keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def pause(self) -> None:
        self.heard.append("pause")

    def resume(self) -> None:
        self.heard.append("resume")

    def cancel(self) -> None:
        self.heard.append("cancel")

    def delivered(self) -> AnswerCounts | None:
        return AnswerCounts(prompt=7)

    def ends_as(self, error: RadixgateError) -> RadixgateError:
        return WorkerFailed(f"{error.message}, as told")


class Waiting(StandIn):
    def begin(self, attempt: Attempt) -> None:
        self._stand_for(attempt)


def test_a_pause_before_there_is_an_attempt_reaches_it_when_it_begins() -> None:
    waiting, attempt = Waiting(), Steered()
    waiting.pause()
    assert waiting.delivered() is None
    assert waiting.ends_as(WorkerFailed("gone")).message == "gone"
    waiting.begin(attempt)
    waiting.resume()
    assert attempt.heard == ["pause", "resume"]
    assert waiting.delivered() == AnswerCounts(prompt=7)
    assert waiting.ends_as(WorkerFailed("gone")).message == "gone, as told"


def test_a_pause_that_was_taken_back_in_time_is_none() -> None:
    waiting, attempt = Waiting(), Steered()
    waiting.pause()
    waiting.resume()
    waiting.begin(attempt)
    assert attempt.heard == []
