"""The client's side of a request: what it has been sent, how that is timed, and how it ends."""

import math

from radixgate.errors import NoWorkerAvailable, RadixgateError
from radixgate.fleet.fleet import Lease
from radixgate.gateway.attempt.aborted_answer import AbortedByOrder, Ending
from radixgate.gateway.attempt.attempt import AnswerCounts, Client, Headers, WholeHead
from radixgate.gateway.attempt.first_token import FirstToken, begins_with_output
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.exchange.admission import Admission
from radixgate.gateway.exchange.core import Core
from radixgate.gateway.exchange.held_answer import HeldAnswer
from radixgate.gateway.heads import http_answer
from radixgate.gateway.observe.metrics import FinalOutcome
from radixgate.proto import sse
from radixgate.proto.error_body import error_event

_OK = FinalOutcome.OK  # a member is looked up by a function call each time
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


class ClientAnswer:
    """Ends exactly once, by `end`, `give_up`, `cut` or `leave`, and is counted then."""

    __slots__ = (
        "_client",
        "_core",
        "_first_token",
        "_flows",
        "_lane",
        "_last_piece",
        "_last_piece_at",
        "_tells_worker",
        "asked_at",
        "ended",
        "held",
        "lease",
        "request_id",
        "sent",
        "started_at",
    )

    def __init__(self, core: Core, client: Client, request_id: str, admission: Admission) -> None:
        """It is in flight from here on: who has made it also ends it."""
        self.held: HeldAnswer | None = None  # of the attempt under way, or of the last one
        self.sent = False  # the client has seen part of it: nothing can be repeated
        self.ended = False
        self.request_id = request_id
        arrived_at = admission.arrived_at
        self.started_at = core.clock.now() if arrived_at is None else arrived_at  # of all times
        self.lease: Lease | None = None  # of the worker that was asked last
        self.asked_at = 0.0  # and when it was
        self._core = core
        self._client = client
        self._tells_worker = admission.caller.admin  # who asks may know where its request went
        self._lane: ChunkLane | None = None  # nobody has asked for it
        core.metrics.in_flight += 1

    def hold(self, status: int, headers: Headers) -> None:
        """A worker begins to answer; until its first bytes come, another one still may."""
        self.held = HeldAnswer(status, headers)
        # As long as none has, nothing of an answer is timed.
        self._first_token: FirstToken | None = None  # looks for it while a stream begins
        self._flows = False  # a stream that has brought its first token
        self._last_piece = b""
        self._last_piece_at = 0.0

    def begin(self, head: WholeHead, data: bytes, now: float) -> bool:
        """A good stream, which waits for nothing: its head and first piece go out. True if that
        brings the first output."""
        self.held = HeldAnswer(head.status, head.headers, streams=True)
        self._first_token, self._flows = None, begins_with_output(data)
        if self._flows:
            self._time_first_token(now)
        first = self._flows or self._time_piece(self.held, data, now)
        self._last_piece, self._last_piece_at = data, now
        self._client.on_begin(head, self._own_lines(), data)
        self.sent = True
        return first

    def add(self, data: bytes, now: float) -> bool:
        """The next piece of a body. True if it brings the first output of a good answer."""
        if self._flows:  # a stream's pieces, all but the first
            if self._lane is not None:
                self._lane.send(data)
                return False
            self._core.metrics.itl.observe(now - self._last_piece_at)
            self._last_piece_at, self._last_piece = now, data
            self._client.on_body(data)
            return False
        held = self.held
        assert held is not None
        first = held.ok and self._time_piece(held, data, now)
        self._last_piece_at = now
        if self.sent:
            self._last_piece = data
            self._client.on_body(data)
        elif held.add(data):
            self._last_piece = data
            held.send(self._client, self._own_headers())
            self.sent = True
        return first

    def lane(self) -> ChunkLane | None:
        """None: the stream does not flow yet, or its client needs more."""
        if self._lane is None and self.sent and self._flows:
            lane = self._lane = self._client.lane()
            if lane is not None:
                core = self._core
                lane.begin(core.clock.now, core.metrics, self._last_piece_at, self._last_piece)
        return self._lane

    @property
    def lane_used_at(self) -> float:
        """When a piece last went by it."""
        return -math.inf if self._lane is None else self._lane.sent_at

    def end_at_once(self, head: WholeHead, body: bytes, counts: AnswerCounts) -> None:
        """A good answer that came whole goes out."""
        core = self._core
        now = core.clock.now()
        if head.streams:
            self._time_first_token(now)
        self.ended = True
        core.metrics.answered_whole(counts, now - self.started_at)
        if core.on_counted is not None:
            core.on_counted(_OK)
        self._client.on_answer(head, self._own_lines(), body, counts)

    def end(self, counts: AnswerCounts | None) -> None:
        """The answer is whole: the rest of it goes out."""
        held = self.held
        assert held is not None
        if counts is not None:
            self._core.metrics.answered(counts)
        told = 0 if counts is None else counts.error_status
        self._count(_outcome_of(told or held.status))
        if self.sent:
            self._client.on_end(counts)
        else:
            held.send_whole(self._client, self._own_headers(), counts)

    def end_aborted(self, ending: Ending, counts: AnswerCounts | None) -> None:
        """The answer is ended by order."""
        if self.sent:
            held = self.held
            assert held is not None
            if not held.streams or ending.status != 200:
                # Of no form that has an end.
                self._break_off(AbortedByOrder("the request was aborted"), _OK)
                return
            self._client.on_body(self._gap() + ending.rest)
        else:
            self.held = HeldAnswer(ending.status, [(b"content-type", ending.content_type)])
            self.held.add(ending.rest)
        self.end(counts)

    def give_up(self, error: RadixgateError) -> None:
        """There is no answer, or no more of it."""
        if self.ended:
            return
        if self.sent:
            self._break_off(error, FinalOutcome.UPSTREAM_ERROR)
        else:
            self._fail(error)

    @property
    def torn(self) -> bool:
        """A fault has struck while it went out: nobody knows how far it came, only a cut is
        honest. Whether its head is on its way, only who writes it can tell."""
        return self.ended or (self._client.head_written and not self.sent)

    def cut(self, error: RadixgateError) -> None:
        """The client is to see that it is not whole."""
        if not self.ended:
            self._count(FinalOutcome.UPSTREAM_ERROR)
        self._client.on_failure(error)

    def _fail(self, error: RadixgateError) -> None:
        """Nothing has been sent: the error is the answer."""
        status, headers, body = http_answer.error_answer(error)
        rejected = isinstance(error, NoWorkerAvailable)
        self._count(FinalOutcome.REJECTED if rejected else _outcome_of(status))
        self._client.on_head(status, headers + self._own_headers())
        self._client.on_body(body)
        self._client.on_end(None)

    def _break_off(self, error: RadixgateError, outcome: FinalOutcome) -> None:
        held = self.held
        assert held is not None
        self._count(outcome)
        if not held.streams:
            self._client.on_failure(error)
            return
        self._client.on_body(self._gap() + error_event(error) + sse.DONE)
        self._client.on_end(None)

    def _gap(self) -> bytes:
        """An event that was cut must end before another begins."""
        last = self._last_piece if self._lane is None else self._lane.last
        return b"" if last.endswith(_EVENT_ENDS) else b"\n\n"

    def leave(self) -> None:
        """The client is gone."""
        self._count(FinalOutcome.CLIENT_DISCONNECT)

    def _count(self, outcome: FinalOutcome) -> None:
        core = self._core
        self.ended = True
        core.metrics.ended(outcome, core.clock.now() - self.started_at)
        if core.on_counted is not None:
            core.on_counted(outcome)

    def _time_piece(self, held: HeldAnswer, data: bytes, now: float) -> bool:
        """A whole answer has no first token to be timed, only a first piece."""
        if not held.streams:
            return not self._last_piece_at
        if self._first_token is None:
            self._first_token = FirstToken()
        if not self._first_token.feed(data):
            return False
        # It has been sent too, as a good stream waits for nothing but its first byte.
        self._flows, self._first_token = True, None
        self._time_first_token(now)
        return True

    def _time_first_token(self, now: float) -> None:
        metrics, lease = self._core.metrics, self.lease
        assert lease is not None
        metrics.ttft.observe(now - self.started_at)
        metrics.predicted(lease.stake.predicted_ttft_s, now - self.asked_at)

    def _own_lines(self) -> bytes:
        """The headers of the gateway's own, as they are sent."""
        lines = f"x-request-id: {self.request_id}\r\nx-radixgate-policy: {self._core.policy}\r\n"
        if self._tells_worker and self.lease is not None:
            lines += f"x-radixgate-worker: {self.lease.worker.id}\r\n"
        return lines.encode()

    def _own_headers(self) -> Headers:
        """The same, one by one."""
        headers = self._core.own_headers.of(self.request_id)
        if self._tells_worker and self.lease is not None:
            headers.append((b"x-radixgate-worker", self.lease.worker.id.encode()))
        return headers


def _outcome_of(status: int) -> FinalOutcome:
    if status < 400:
        return _OK
    return FinalOutcome.CLIENT_ERROR if status < 500 else FinalOutcome.UPSTREAM_ERROR
