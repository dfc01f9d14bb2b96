"""One request while experiments run: it may wait, and what becomes of it is noted."""

from functools import partial
from typing import Protocol

import msgspec

from radixgate.errors import RadixgateError
from radixgate.fleet.fleet import Ask, Lease, Outcome
from radixgate.gateway.attempt.attempt import AnswerCounts, Attempt, Client, Headers, WholeHead
from radixgate.gateway.attempt.first_token import FirstToken
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.attempt.stand_in import StandIn
from radixgate.gateway.exchange.admission import OPEN, Admission
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.exchange.unbegun import answer_or_cut, end_unbegun, not_begun
from radixgate.gateway.heads import http_answer
from radixgate.gateway.heads.hop_headers import find
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.observe.metrics import FinalOutcome

_EVENT_STREAM = b"text/event-stream"


class Label(msgspec.Struct, frozen=True):
    """What a request counts for. It is given by the time of its dispatch, and kept."""

    arm: int  # 0: A, 1: B
    block: int  # -1: the experiment has no blocks
    washout: bool


class Shade(Protocol):
    """What a shadow keeps of a request until that ends."""

    def first_token(self) -> None: ...

    def over(self) -> None: ...


class Watcher(Protocol):
    """Who begins watched requests, and hears of their steps."""

    def begin(self, request: "WatchedRequest") -> Attempt:
        """Send it on its way; the request takes the answer."""
        ...

    def dispatched(self, request: "WatchedRequest") -> None:
        """It has its first lease."""
        ...

    def first_token(self, request: "WatchedRequest") -> None:
        """Once at most; of an answer that is no stream, its first piece."""
        ...

    def over(self, request: "WatchedRequest") -> None:
        """It has ended, once, however."""
        ...

    def shown_policy(self, request: "WatchedRequest") -> bytes | None:
        """For the answer's header; None: as it is."""
        ...


class WatchedRequest(StandIn):
    """An `Attempt` to the front door and the `Downstream` of the core, and a `Waiter`.

    Holds what is known of the request, and decides nothing.
    """

    __slots__ = (
        "_client",
        "_first",
        "_watcher",
        "admission",
        "ask",
        "body",
        "core",
        "counts",
        "dispatched_at",
        "ended_at",
        "first_token_at",
        "head",
        "held_s",
        "label",
        "last_piece_at",
        "lease",
        "left",
        "outcome",
        "over",
        "shades",
        "status",
        "streams",
    )

    def __init__(
        self,
        watcher: Watcher,
        core: Core,
        head: RequestHead,
        body: bytes,
        client: Client,
        admission: Admission,
    ) -> None:
        super().__init__()
        self.core = core
        self.head = head
        self.body = body
        self.admission = admission
        self.held_s = 0.0
        self.ask: Ask | None = None  # None: it could not be read, or not yet
        self.lease: Lease | None = None  # the first; None: it was not dispatched
        self.dispatched_at: float | None = None
        self.first_token_at: float | None = None
        self.last_piece_at: float | None = None
        self.ended_at: float | None = None
        self.outcome: Outcome | None = None  # of the last attempt that has ended
        self.status = 0  # of the answer; 0: none began
        self.streams = False
        self.counts: AnswerCounts | None = None
        self.left = False  # the client has
        self.over = False
        self.label: Label | None = None  # by its dispatch; None: no experiment acted then
        self.shades: list[Shade] = []  # what shadows did with it
        self._watcher = watcher
        self._client = client
        self._first = FirstToken()

    @property
    def size(self) -> int:
        return len(self.body)

    def go(self, waited_s: float) -> None:
        """Begin. Callbacks may come before this returns."""
        self.core.held.leave(self)
        self.held_s = waited_s
        try:
            attempt = self._watcher.begin(self)
        except Exception:
            not_begun(self.core, self.head, self, OPEN)  # what it gives back, its end does
            return
        if self.over:
            return
        self._stand_for(attempt)

    # ------------------------------------------------------------ from the choice of workers

    def asked(self, ask: Ask) -> None:
        """A worker is about to be chosen for it."""
        self.ask = ask

    def leased(self, lease: Lease) -> None:
        if self.lease is None:
            self.lease = lease
            self.dispatched_at = self.core.clock.now()
            self._watcher.dispatched(self)

    def attempt_ended(self, lease: Lease, outcome: Outcome) -> None:
        self.outcome = outcome

    # ------------------------------------------------------------ from the front door

    def cancel(self) -> None:
        if self.over:
            return
        if self._attempt is None:
            self.core.turned_away(FinalOutcome.CLIENT_DISCONNECT)
        else:
            self._attempt.cancel()
        self.left = True
        self._end()

    def abort(self) -> None:
        """By order, while it waits for a switch."""
        self.left = True
        self._end()
        end = partial(end_unbegun, self.core, self.head, self.body, self._turned_away)
        answer_or_cut(end, self._client)

    def _turned_away(self, outcome: FinalOutcome) -> Client:
        self.core.turned_away(outcome)
        return self._client

    # ------------------------------------------------------------ from the core

    @property
    def head_written(self) -> bool:
        return self._client.head_written

    def on_head(self, status: int, headers: Headers) -> None:
        self.status = status
        kind = find(headers, b"content-type") or b""
        self.streams = kind.lower().startswith(_EVENT_STREAM)
        policy = self._watcher.shown_policy(self)
        if policy is not None:
            named = b"x-radixgate-policy"
            headers = [(name, policy if name == named else value) for name, value in headers]
        self._client.on_head(status, headers)

    def on_body(self, data: bytes) -> None:
        self.last_piece_at = now = self.core.clock.now()
        if self.first_token_at is None and self._brings_output(data):
            self.first_token_at = now
            self._watcher.first_token(self)
        self._client.on_body(data)

    def on_begin(self, head: WholeHead, own: bytes, body: bytes) -> None:
        self.on_head(head.status, head.headers + http_answer.fields_of(own))
        self.on_body(body)

    def lane(self) -> ChunkLane | None:
        return None  # each piece is looked at

    def _brings_output(self, data: bytes) -> bool:
        if self.lease is None or self.status >= 400:
            return False
        return not self.streams or self._first.feed(data)

    def on_end(self, counts: AnswerCounts | None) -> None:
        self.counts = counts
        self._end()
        self._client.on_end(counts)

    def on_answer(self, head: WholeHead, own: bytes, body: bytes, counts: AnswerCounts) -> None:
        self.on_head(head.status, head.headers + http_answer.fields_of(own))
        self.on_body(body)
        self.on_end(counts)

    def on_failure(self, error: RadixgateError) -> None:
        self.outcome = Outcome.FAILED
        self._end()
        self._client.on_failure(error)

    def _end(self) -> None:
        if self.over:
            return  # its end has failed
        self.over = True
        self.core.held.leave(self)
        self.ended_at = self.core.clock.now()
        self.admission.over(self.counts, self)
        self._watcher.over(self)
