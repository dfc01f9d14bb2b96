"""One request as it is told afterwards: when it did what, where it went, and how it ended."""

import logging
from collections.abc import Sequence
from typing import Protocol

from radixgate.clock import Clock
from radixgate.errors import RadixgateError
from radixgate.fleet.fleet import Ask, Lease, Outcome
from radixgate.gateway.attempt.attempt import AnswerCounts, Attempt, Client, Headers, WholeHead
from radixgate.gateway.attempt.first_token import FirstToken
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.attempt.request_ids import HEADER
from radixgate.gateway.attempt.stand_in import StandIn
from radixgate.gateway.heads.hop_headers import find
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.observe.metrics import FinalOutcome

_EVENT_STREAM = b"text/event-stream"
_log = logging.getLogger(__name__)


class Span(Protocol):
    """What tracing keeps with a story."""

    def is_recording(self) -> bool:
        """Somebody will see it."""
        ...


class Teller(Protocol):
    """Makes something of stories: a line, spans."""

    def tell(self, story: "Story") -> None:
        """It is over. Called once a request, on the loop; raises nothing."""
        ...


class ToldAttempt:
    """One attempt of a request."""

    __slots__ = ("chosen_at", "ended_at", "lease", "outcome")

    def __init__(self, lease: Lease, chosen_at: float) -> None:
        self.lease = lease
        self.chosen_at = chosen_at
        self.ended_at: float | None = None  # None: it runs
        self.outcome: Outcome | None = None


class Story(StandIn):
    """An `Attempt` to what is before the core, and its `Downstream`: it passes on, and listens.

    Times are the clock's. None stands for what never came to be.
    """

    __slots__ = (
        "_client",
        "_clock",
        "_first",
        "_outcome",
        "_over",
        "_tellers",
        "arrived_at",
        "ask",
        "asked_at",
        "attempts",
        "began_at",
        "counts",
        "ended_at",
        "first_token_at",
        "head",
        "request_id",
        "span",
        "status",
        "streams",
        "tenant",
    )

    def __init__(
        self,
        tellers: Sequence[Teller],
        clock: Clock,
        head: RequestHead,
        client: Client,
        arrived_at: float | None,
    ) -> None:
        """`arrived_at`: before it waited for a place; None: it did not wait."""
        super().__init__()
        self._tellers = tellers
        self._clock = clock
        self._client = client
        self._over = False
        self._first = FirstToken()
        self.head = head
        self.request_id = head.request_id or ""
        self.tenant: str | None = None
        self.span: Span | None = None  # None: it is not traced
        self.began_at = clock.now()
        self.arrived_at = self.began_at if arrived_at is None else arrived_at
        self.asked_at: float | None = None  # its prompt was read; a worker is to be chosen
        self.ask: Ask | None = None
        self.attempts: list[ToldAttempt] = []
        self.first_token_at: float | None = None
        self.ended_at: float | None = None
        self.status = 0  # 0: no answer began
        self.streams = False
        self.counts: AnswerCounts | None = None
        self._outcome: FinalOutcome | None = None  # None: it is not counted yet

    @property
    def outcome(self) -> FinalOutcome:
        """As `radixgate_requests_total` has counted it; it is over."""
        assert self._outcome is not None
        return self._outcome

    def runs(self, attempt: Attempt) -> None:
        """It has been begun; callbacks may have come before this."""
        if self._over:
            return
        self._stand_for(attempt)

    # ------------------------------------------------------------ from the choice of workers

    def asked(self, ask: Ask) -> None:
        if self.ask is None:
            self.ask, self.asked_at = ask, self._clock.now()

    def leased(self, lease: Lease) -> None:
        self.attempts.append(ToldAttempt(lease, self._clock.now()))

    def attempt_ended(self, lease: Lease, outcome: Outcome) -> None:
        for told in self.attempts:
            if told.lease is lease:
                told.ended_at, told.outcome = self._clock.now(), outcome

    # ------------------------------------------------------------ from the front door

    def cancel(self) -> None:
        if self._over:
            return
        if self._attempt is not None:
            self.counts = self._attempt.delivered()
            self._attempt.cancel()
        self._end()

    # ------------------------------------------------------------ from the core

    def counted(self, outcome: FinalOutcome) -> None:
        """Before the last that its client gets of it."""
        self._outcome = outcome

    @property
    def head_written(self) -> bool:
        return self._client.head_written

    def on_head(self, status: int, headers: Headers) -> None:
        self.status = status
        name = find(headers, HEADER)
        if name is not None:
            self.request_id = name.decode("latin-1")
        kind = find(headers, b"content-type") or b""
        self.streams = kind.lower().startswith(_EVENT_STREAM)
        self._client.on_head(status, headers)

    def on_body(self, data: bytes) -> None:
        if self.first_token_at is None and self.status < 400 and self._brings_output(data):
            self.first_token_at = self._clock.now()
        self._client.on_body(data)

    def on_begin(self, head: WholeHead, own: bytes, body: bytes) -> None:
        self.status, self.streams = head.status, head.streams
        if self.first_token_at is None and self._brings_output(body):
            self.first_token_at = self._clock.now()
        self._client.on_begin(head, own, body)

    def lane(self) -> ChunkLane | None:
        return None if self.first_token_at is None else self._client.lane()

    def _brings_output(self, data: bytes) -> bool:
        """Of a whole answer, the first piece does."""
        return not self.streams or self._first.feed(data)

    def on_end(self, counts: AnswerCounts | None) -> None:
        self.counts = counts
        self._end()
        self._client.on_end(counts)

    def on_answer(self, head: WholeHead, own: bytes, body: bytes, counts: AnswerCounts) -> None:
        self.status, self.streams, self.counts = head.status, head.streams, counts
        if self.first_token_at is None:
            # As its attempt ended: a time behind that would make it one that brought nothing.
            ended_at = self.attempts[-1].ended_at if self.attempts else None
            self.first_token_at = self._clock.now() if ended_at is None else ended_at
        self._end()
        self._client.on_answer(head, own, body, counts)

    def on_failure(self, error: RadixgateError) -> None:
        self._end()
        self._client.on_failure(error)

    def _end(self) -> None:
        if self._over:
            return  # its end has failed, and is told once
        self._over = True
        self.ended_at = self._clock.now()
        for teller in self._tellers:
            try:
                teller.tell(self)
            except Exception:
                # Its client is still to hear of the end.
                _log.exception("a request could not be told of")
