"""What a request was let in with: whose it is, since when it is here, what it must give back."""

from typing import Protocol

import msgspec

from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.attempt.caller import ANYONE, Caller


class Gate(Protocol):
    """Who let requests in, and wants to hear how they went."""

    def left(self, admission: "Admission", counts: AnswerCounts | None) -> None:
        """It is over, however it went. None: its answer had no counts, or there is none."""
        ...


class Answered(Protocol):
    """Who knows what has come of an answer that tells no counts."""

    def delivered(self) -> AnswerCounts | None: ...


class Admission(msgspec.Struct, frozen=True, gc=False):
    """Made by the gate; `over` is called once by who begins the request."""

    caller: Caller
    arrived_at: float | None = None  # on the clock's scale; None: now
    gate: Gate | None = None  # None: nothing is to be given back
    charged: float = 0.0  # tokens, of the tenant's limit

    def over(self, counts: AnswerCounts | None, answered: Answered) -> None:
        """Give back its place, and settle what it was charged; before the last of the answer."""
        if self.gate is None:
            return
        try:
            if counts is None or counts.untold:
                counts = answered.delivered()
        finally:
            self.gate.left(self, counts)


# Where nothing is asked first.
OPEN = Admission(ANYONE)
