"""A request that waits for its place, until it is admitted, leaves, or has waited too long."""

from typing import Protocol

from radixgate.errors import NoWorkerAvailable, RadixgateError
from radixgate.gateway.attempt.attempt import Attempt, Client
from radixgate.gateway.attempt.stand_in import StandIn
from radixgate.gateway.entry.waiting_line import WaitingLine
from radixgate.gateway.exchange.admission import Admission
from radixgate.gateway.exchange.held_requests import HeldRequests
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.loop.deadlines import NEVER, Deadlines


class Desk(Protocol):
    """Who sends requests on their way."""

    def begin(self, passage: "Passage") -> Attempt:
        """The request's turn has come; the place is its own, to be given back at its end."""
        ...

    def turn_away(self, passage: "Passage", error: RadixgateError | None) -> None:
        """It never began. The client is to be answered; None: it has left."""
        ...

    def abort(self, passage: "Passage") -> None:
        """It never began, and is to be answered as aborted."""
        ...


class Passage(StandIn):
    """An `Attempt` to the front door, an `Entrant` to the line. Once begun it only steers."""

    __slots__ = (
        "_deadlines",
        "_desk",
        "_held",
        "_line",
        "_waits",
        "admission",
        "body",
        "client",
        "deadline",
        "head",
        "priority",
    )

    def __init__(
        self, desk: Desk, head: RequestHead, body: bytes, client: Client, admission: Admission
    ) -> None:
        super().__init__()
        self.deadline = NEVER
        self.head = head
        self.body = body
        self.client = client
        self.admission = admission
        self.priority = 0
        self._desk = desk
        self._waits = False

    def wait(
        self, line: WaitingLine, deadlines: Deadlines, held: HeldRequests, until: float
    ) -> None:
        """Join the line, which has room to wait; give up at `until`."""
        line.join(self)
        self._line, self._deadlines, self._held = line, deadlines, held
        self._waits = True
        self.deadline = until
        deadlines.watch(self)
        held.enter(self)

    # ------------------------------------------------------------ from the line

    def admitted(self) -> None:
        self._wait_no_more()
        self._stand_for(self._desk.begin(self))

    def on_deadline(self) -> None:
        self._give_up()
        why = "no place became free in time (--queue-timeout-secs)"
        self._desk.turn_away(self, NoWorkerAvailable(why))

    def abort(self) -> None:
        """By order, while it waits."""
        self._give_up()
        self._desk.abort(self)

    # ------------------------------------------------------------ from the front door

    def cancel(self) -> None:
        if self._attempt is not None:
            self._attempt.cancel()
        elif self._waits:
            self._give_up()
            self._desk.turn_away(self, None)

    def _give_up(self) -> None:
        self._line.give_up(self)
        self._wait_no_more()

    def _wait_no_more(self) -> None:
        self._waits = False
        self.deadline = NEVER
        self._deadlines.forget(self)
        self._held.leave(self)
