"""One request at a foreign worker: its bytes go out as they came, and so does the answer.

Only framing and hop-by-hop headers are set anew. A content encoding stays with its bytes.
"""

import asyncio
import logging
from collections.abc import Callable

from msgspec import structs

from radixgate.errors import InternalFault, RadixgateError, WorkerFailed
from radixgate.gateway.attempt.abort_order import AbortOrder, rid_of
from radixgate.gateway.attempt.aborted_answer import AbortedByOrder
from radixgate.gateway.attempt.attempt import (
    AnswerCounts,
    Downstream,
    FrontRequest,
    Headers,
    WholeHead,
)
from radixgate.gateway.attempt.broken_stream import BrokenStream
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.settings.header_rules import Crosses
from radixgate.gateway.upstream.connection import UpstreamConnection
from radixgate.gateway.upstream.pool import UpstreamPool
from radixgate.gateway.workers.answer_json import counts_of
from radixgate.gateway.workers.answer_reading import AnswerReader, StreamedAnswer
from radixgate.gateway.workers.seen_heads import SeenHeads

_log = logging.getLogger(__name__)
_UNREAD = object()


class HttpWay:
    """The way to one worker, as the attempts there need it."""

    def __init__(self, pool: UpstreamPool, connect_timeout_s: float, crosses: Crosses) -> None:
        """`crosses`: which headers of answers clients get."""
        self.pool = pool
        self.seen_heads = SeenHeads(crosses)
        self.connect_timeout_s = connect_timeout_s
        self.texts_are_news: bool | None = None  # see `BrokenStream`
        self._host_line = b"host: %b\r\n" % pool.authority.encode()

    def render_head(self, request: FrontRequest) -> bytes:
        own = f"x-request-id: {request.request_id}\r\ncontent-length: {len(request.body)}\r\n\r\n"
        whose = self.pool.credentials or request.authorization
        return b"".join((request.line, self._host_line, request.forwarded, whose, own.encode()))


class HttpAttempt:
    """One request on one connection: an `Attempt` to the core, a listener to the connection."""

    __slots__ = (
        "_begins",
        "_connection",
        "_dialing",
        "_downstream",
        "_lane",
        "_left",
        "_paused",
        "_reader",
        "_request",
        "_rid",
        "_way",
        "orders",
    )

    def __init__(
        self,
        way: HttpWay,
        request: FrontRequest,
        downstream: Downstream,
        left: Callable[["HttpAttempt"], None],
    ) -> None:
        """`left`: told when it is over, or is broken off."""
        self._way, self._left = way, left
        self._request = request
        self._downstream: Downstream | None = downstream  # None: over, nothing more is told
        self._connection: UpstreamConnection | None = None
        self._dialing: asyncio.Task[None] | None = None
        self._paused = False
        self._reader: AnswerReader | None = None  # None: an answer that is not read
        self._begins: WholeHead | None = None  # of a stream, until bytes come that it is told with
        self._lane: ChunkLane | None = None  # None: there is none, or not yet
        self._rid: object = _UNREAD  # until an order asks for it
        self.orders = 0  # to end it, that the worker has been told and not refused

    @property
    def by_order(self) -> bool:
        return self.orders > 0

    def is_meant_by(self, order: AbortOrder) -> bool:
        if order.everything:
            return True
        self.read_rid()
        return order.names_any(self._rid)

    def read_rid(self) -> int:
        """For the first order, once; how many bytes that took."""
        if self._rid is not _UNREAD:
            return 0
        self._rid = rid_of(self._request.body)
        return len(self._request.body)

    @property
    def unsent(self) -> bool:
        return self._connection is None

    # ------------------------------------------------------------ from the core

    def pause(self) -> None:
        self._paused = True
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        self._paused = False
        if self._connection is not None:
            self._connection.resume()

    def delivered(self) -> AnswerCounts | None:
        return None if self._reader is None else self._reader.counts_so_far()

    def ends_as(self, error: RadixgateError) -> RadixgateError:
        """A worker may break it off, or be silent, when it is told to end it."""
        if not (self.by_order and isinstance(error, WorkerFailed)):
            return error
        aborted = _aborted()
        if self._reader is not None:
            told = self._reader.told_of_choices()
            aborted.broken = BrokenStream(told, self._way.texts_are_news)
        return aborted

    def cancel(self) -> None:
        self._detach()
        if self._dialing is not None:
            self._dialing.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def fail(self, error: RadixgateError) -> None:
        """Break off and say so."""
        downstream = self._downstream
        self.cancel()
        if downstream is not None:
            downstream.on_failure(error)

    # ------------------------------------------------------------ from the connection

    def on_response(self, status: int, headers: Headers) -> None:
        if self._downstream is None:
            return
        if status >= 400 and self.by_order:
            self.fail(_aborted())  # so some workers end what has not begun, or does not stream
            return
        if status == 401 and self._way.pool.credentials:
            # The key is ours: the client has given no wrong one, and could not mend it.
            self.fail(self._way.pool.failure("it does not take the key it is asked with"))
            return
        seen = self._way.seen_heads.of(status, headers)
        if seen.reader is not None:
            self._reader = seen.reader()
        if seen.whole is not None and seen.whole.streams:
            # One that ends behind its head has no finish, and has failed.
            self._begins = seen.whole
            return
        self._downstream.on_head(status, seen.passed)

    def on_data(self, data: bytes) -> None:
        downstream = self._downstream
        if downstream is None:
            return
        if self._reader is not None:
            self._reader.feed(data)
        if self._lane is not None:
            self._lane.send(data)
            return
        begins, self._begins = self._begins, None
        if begins is None:
            downstream.on_body(data)
        else:
            downstream.on_begin(begins, b"", data)
        self._lane = downstream.lane()

    def on_answer(self, status: int, headers: Headers, body: bytes) -> None:
        self._connection = None
        try:
            whole = self._way.seen_heads.of(status, headers).whole
            if whole is not None and body:
                counts = self._counts_of_stream(body) if whole.streams else counts_of(body)
                if counts is not None:
                    downstream = self._detach()
                    if downstream is not None:
                        downstream.on_answer(whole, b"", body, counts)
                    return
            self.on_response(status, headers)
            if body:
                self.on_data(body)
        except Exception:
            self._fail_inside()
        else:
            self.on_complete()

    def _counts_of_stream(self, body: bytes) -> AnswerCounts | None:
        """None: it has no finish of a good answer, and is to be looked at as if it came slowly."""
        reader = self._reader = StreamedAnswer()
        reader.feed(body)
        return reader.counts() if reader.is_good() else None

    def on_complete(self) -> None:
        self._connection = None
        reader, counts = self._reader, None
        try:
            if reader is not None and not reader.is_whole():
                why = "the stream ended without a finish and without [DONE]"
                self.fail(self.ends_as(self._way.pool.failure(why)))
                return
            if reader is not None:
                counts = reader.counts()
            if counts is not None and counts.error_status and self.by_order:
                # Some of SGLang's aborts are errors: it did as it was told.
                counts = structs.replace(counts, error_status=0)
        except Exception:
            self._fail_inside()
            return
        downstream = self._detach()
        if downstream is not None:
            downstream.on_end(counts)

    def on_broken(self, error: RadixgateError, answered: bool) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.used and not answered and not self.by_order:
            # The worker closed a kept connection as we took it up again: it has not seen the
            # request, so this is no failure of the worker's. A fresh connection is not `used`.
            self.dial()
            return
        error = self.ends_as(error)
        downstream = self._detach()
        if downstream is not None:
            downstream.on_failure(error)

    # ------------------------------------------------------------ the connection

    def dial(self) -> None:
        self._dialing = asyncio.get_running_loop().create_task(self._connect_and_send())

    async def _connect_and_send(self) -> None:
        try:
            connection = await self._way.pool.connect(self._way.connect_timeout_s)
        except RadixgateError as error:
            downstream = self._detach()
            if downstream is not None:
                downstream.on_failure(error)
            return
        except Exception:
            self._fail_inside()
            return
        self._dialing = None
        try:
            self.send(connection)
        except Exception:
            self._fail_inside()

    def send(self, connection: UpstreamConnection) -> None:
        self._connection = connection
        connection.send(self._way.render_head(self._request), self._request.body, self)
        if self._paused:
            connection.pause()

    def _fail_inside(self) -> None:
        """A fault of ours, called where it is caught and nobody else would tell of it."""
        _log.exception("an attempt failed")
        self.fail(InternalFault())

    def _detach(self) -> Downstream | None:
        downstream, self._downstream = self._downstream, None
        self._left(self)
        return downstream


def _aborted() -> AbortedByOrder:
    return AbortedByOrder("the request was aborted")
