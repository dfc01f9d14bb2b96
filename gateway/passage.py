"""A request on its way past the limits: it waits for its place, and gives it back at the end."""

from collections.abc import Callable
from typing import Protocol

from radixgate.errors import NoWorkerAvailable, RadixgateError
from radixgate.gateway.attempt import AnswerCounts, Attempt, Downstream, Headers, WholeHead
from radixgate.gateway.caller import Caller
from radixgate.gateway.deadlines import NEVER, Deadlines
from radixgate.gateway.held_requests import HeldRequests
from radixgate.gateway.request_head import RequestHead
from radixgate.gateway.stand_in import StandIn
from radixgate.gateway.waiting_line import WaitingLine


class Desk(Protocol):
    """Who sends requests on their way, and hears how they went."""

    def begin(self, passage: "Passage") -> Attempt:
        """The request's turn has come; the passage takes the answer."""
        ...

    def turn_away(self, passage: "Passage", error: RadixgateError | None) -> None:
        """It never began. The client is to be answered; None: it has left."""
        ...

    def abort(self, passage: "Passage") -> None:
        """It never began, and is to be answered as aborted."""
        ...

    def ended(self, passage: "Passage", counts: AnswerCounts | None) -> None:
        """It is over, however it went. None: the answer had no counts, or there is none."""
        ...


class Passage(StandIn):
    """An `Attempt` to the front door, an `Entrant` to the line, and what the core answers to.

    The place is held until the last byte of the answer has been handed over, or the client left.
    """

    __slots__ = (
        "_deadlines",
        "_desk",
        "_held",
        "_line",
        "_over",
        "arrived_at",
        "body",
        "caller",
        "charged",
        "client",
        "deadline",
        "head",
        "on_body",
        "on_head",
        "priority",
    )

    def __init__(
        self, desk: Desk, head: RequestHead, body: bytes, client: Downstream, caller: Caller
    ) -> None:
        super().__init__()
        self.deadline = NEVER
        self.head = head
        self.body = body
        self.client = client
        self.caller = caller
        self.priority = 0
        self.arrived_at = 0.0
        self.charged = 0.0  # tokens, of the tenant's limit
        # The client's own: a piece of a stream costs nothing more on the way.
        self.on_head: Callable[[int, Headers], None] = client.on_head
        self.on_body: Callable[[bytes], None] = client.on_body
        self._desk = desk
        self._line: WaitingLine | None = None  # None: no place is held or waited for
        self._deadlines: Deadlines | None = None  # None: it does not wait
        self._held: HeldRequests | None = None
        self._over = False

    def start(self) -> None:
        """Nothing is waited for."""
        attempt = self._desk.begin(self)
        if self._over:
            return
        self._stand_for(attempt)

    def enter(
        self, line: WaitingLine, deadlines: Deadlines, held: HeldRequests, until: float
    ) -> None:
        """Start, or wait in `line` until the deadline. Raises TooManyRequests."""
        at_once = line.enter(self)
        self._line = line
        if at_once:
            self.start()
            return
        self._deadlines = deadlines
        self.deadline = until
        deadlines.watch(self)
        self._held = held
        held.enter(self)

    # ------------------------------------------------------------ from the line

    def admitted(self) -> None:
        self._wait_no_more()
        self.start()

    def on_deadline(self) -> None:
        self._finish(None)
        why = "no place became free in time (--queue-timeout-secs)"
        self._desk.turn_away(self, NoWorkerAvailable(why))

    def abort(self) -> None:
        """By order, while it waits."""
        self._finish(None)
        self._desk.abort(self)

    # ------------------------------------------------------------ from the front door

    def cancel(self) -> None:
        if self._over:
            return
        waited, attempt = self._deadlines is not None, self._attempt
        self._finish(self.delivered())
        if attempt is not None:
            attempt.cancel()
        elif waited:
            self._desk.turn_away(self, None)

    # ------------------------------------------------------------ from the core

    def on_end(self, counts: AnswerCounts | None) -> None:
        self._finish(self.delivered() if counts is None or counts.untold else counts)
        self.client.on_end(counts)

    def on_answer(self, head: WholeHead, own: bytes, body: bytes, counts: AnswerCounts) -> None:
        self._finish(self.delivered() if counts.untold else counts)
        self.client.on_answer(head, own, body, counts)

    def on_failure(self, error: RadixgateError) -> None:
        self._finish(self.delivered())
        self.client.on_failure(error)

    def _finish(self, counts: AnswerCounts | None) -> None:
        self._over = True
        self._attempt = None
        if self._deadlines is not None or self._held is not None:
            self._wait_no_more()
        line, self._line = self._line, None
        if line is not None:
            line.leave(self)
        self._desk.ended(self, counts)

    def _wait_no_more(self) -> None:
        deadlines, self._deadlines = self._deadlines, None
        self.deadline = NEVER
        if deadlines is not None:
            deadlines.forget(self)
        if self._held is not None:
            self._held.leave(self)
            self._held = None
