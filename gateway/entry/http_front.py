"""The listening side of the gateway: one raw protocol for generations, and a way to the rest.

A POST to a generation endpoint is answered here, byte by byte. Any other request is handed over,
with its connection and everything read so far, to the aiohttp application, which closes it after
its answer: so no pooled client ever sends a generation there. Pipelined requests keep their order.
"""

import asyncio
from typing import cast

from radixgate.errors import RadixgateError, RequestError, RequestTimeout
from radixgate.gateway.attempt.attempt import AnswerCounts, Attempt, Headers, WholeHead
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.entry.connections import Front
from radixgate.gateway.heads import http_answer
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.heads.request_reader import ReadRequest, RequestReader
from radixgate.gateway.loop.deadlines import NEVER

# Bytes that may wait for a slow reader before its worker is no longer read.
WRITE_HIGH_BYTES = 65_536
# To close at once would reset a client that is still sending, and it might not see its answer.
LINGER_S = 5.0


class FrontConnection(asyncio.Protocol):
    """One client connection: a request, then its answer, of which it is the `Downstream`."""

    def __init__(self, front: Front) -> None:
        self.deadline = NEVER
        self._front = front
        self._limits, self._turn, self._intake = front.limits, front.turn, front.turn.requests
        self._reader = RequestReader(front.hot_paths, front.limits, front.heads)
        self._transport: asyncio.Transport | None = None  # None: lost, or handed over
        self._heir: asyncio.Protocol | None = None  # None: not handed over
        self._request: RequestHead | None = None  # being answered
        self._attempt: Attempt | None = None
        self._head: tuple[int, Headers] | None = None  # of the answer, not yet written
        self.head_written = False  # or is about to be
        self._chunked, self._keep_alive = False, True
        self._paused = False  # the client does not read as fast as we write
        self._closing = False  # lost, handed over, or about to close: nothing more is read

    # ------------------------------------------------------------ from the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES)
        self._turn.writes.join(self._transport)
        self._front.connections.add(self)
        self._front.deadlines.watch(self)
        self._wait(self._limits.idle_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._cancel()

    def eof_received(self) -> bool:
        # A client that closes its sending side counts as gone: a half-closed socket cannot be told
        # from a closed one before the next write, and a worker must not compute for nobody.
        self._intake.work_off()
        if self._request is not None:
            self.abort()
        elif self._transport is not None:
            self._turn.send(self._transport)
        return False

    def data_received(self, data: bytes) -> None:
        self._intake.take(self, data)

    def broke(self, exc: Exception) -> None:
        self.abort()

    def pause_writing(self) -> None:
        self._paused = True
        self._wait(self._limits.stall_timeout_s)
        if self._attempt is not None:
            self._attempt.pause()

    def resume_writing(self) -> None:
        self._paused = False
        if not self._closing:
            self._wait(self._limits.idle_timeout_s)
        if self._request is not None:
            self.deadline = NEVER
        if self._attempt is not None:
            self._attempt.resume()

    def on_deadline(self) -> None:
        self.deadline = NEVER
        if self._closing or self._request is not None or self._paused:
            self.abort()
        elif self._reader.idle:
            self._close()
        else:
            self._refuse(RequestTimeout("the request did not arrive in time", code="timeout"))

    # ------------------------------------------------------------ the request

    def received(self, data: bytes) -> None:
        """The client's next bytes; none: look at what was kept."""
        if self._closing:
            if self._heir is not None and data:  # of the turn in which it was handed over
                self._heir.data_received(data)
            return
        reader = self._reader
        if self._request is not None:
            reader.keep(data)
            return
        try:
            request = reader.read(data)
        except RequestError as error:
            self._refuse(error)
            return
        if request is not None:
            self._act(request)
            return
        if reader.awaits_continue:
            self._write(http_answer.CONTINUE)
        if reader.in_body:
            before = NEVER if reader.just_begun else self.deadline
            self.deadline = self._limits.piece_by(self._front.clock.now(), before, len(data))
        elif reader.just_begun:
            self._wait(self._limits.head_timeout_s)

    def _act(self, request: ReadRequest) -> None:
        if request.replay is not None:
            self._hand_over(request.replay)
            return
        if not self._paused:
            self.deadline = NEVER
        front, self._request = self._front, request.head
        self._keep_alive = (
            request.head.keep_alive and not self._reader.broken and not front.draining
        )
        attempt = front.generator.generate(request.head, request.body, self)
        if self._request is request.head:
            self._attempt = attempt
            if self._paused:
                attempt.pause()

    def _hand_over(self, replay: bytes) -> None:
        transport = self._transport
        assert transport is not None
        self._turn.send(transport)
        self._leave()
        if transport.is_closing():
            return  # lost in this turn: the end would come before the heir's task has begun
        admin = self._heir = self._front.make_admin()
        transport.set_protocol(admin)
        admin.connection_made(transport)
        admin.data_received(replay)

    # ------------------------------------------------------------ the answer

    def on_head(self, status: int, headers: Headers) -> None:
        self._head = (status, headers)

    def on_body(self, data: bytes) -> None:
        head = b"" if self._head is None else self._render_head(*self._head)
        self._write(head + (http_answer.chunk(data) if self._chunked else data))

    def on_begin(self, head: WholeHead, own: bytes, body: bytes) -> None:
        self.head_written = True
        self._write(self._under(head, own, body, http_answer.END_OF_CHUNK))

    def lane(self) -> ChunkLane | None:
        if self._transport is None or not self._chunked:
            return None
        return ChunkLane(self._turn, self._transport)

    def on_answer(self, head: WholeHead, own: bytes, body: bytes, counts: AnswerCounts) -> None:
        if self._transport is not None:
            answer = self._under(head, own, body, http_answer.END_AND_LAST_CHUNK)
            self._turn.put(self._transport, answer)
        self._answered()

    def _under(self, head: WholeHead, own: bytes, body: bytes, end: bytes) -> bytes:
        """`end`: of the body, where it goes out as a chunk."""
        more = b"" if head.framed else self._framing()
        line, end = (b"%x\r\n" % len(body), end) if self._chunked else (b"", b"")
        # In one copy of the body.
        return b"".join((head.lines, own, more, self._connection_line(), b"\r\n", line, body, end))

    def on_end(self, counts: AnswerCounts | None) -> None:
        if self._head is not None:
            status, headers = self._head
            if not http_answer.is_framed(status, headers):
                headers = [*headers, (b"content-length", b"0")]
            self._write(self._render_head(status, headers))
        elif self._chunked:
            self._write(http_answer.LAST_CHUNK)
        self._answered()

    def on_failure(self, error: RadixgateError) -> None:
        """The core answers errors itself while it can; now only cutting the answer is honest."""
        self._attempt = None
        self.abort()

    def _render_head(self, status: int, headers: Headers) -> bytes:
        self._head = None
        more = b"" if http_answer.is_framed(status, headers) else self._framing()
        head = http_answer.answer_head(status, headers, more + self._connection_line())
        self.head_written = True
        return head

    def _framing(self) -> bytes:
        """Of a body whose end does not show from its head. HTTP/1.0 knows no chunks: there the end
        of the connection is the end of the body."""
        assert self._request is not None
        self._chunked = http11 = self._request.http11
        self._keep_alive = self._keep_alive and http11
        return http_answer.CHUNKED if http11 else b""

    def _connection_line(self) -> bytes:
        assert self._request is not None
        if not self._keep_alive:
            return b"connection: close\r\n"
        return b"" if self._request.http11 else b"connection: keep-alive\r\n"

    def _answered(self) -> None:
        self._request = self._attempt = None
        self._chunked = self.head_written = False
        if not self._keep_alive or self._reader.broken:
            self._close()
            return
        if not self._paused:
            self.deadline = self._front.clock.now() + self._limits.idle_timeout_s
        if self._reader.unread:
            # Not from here: a long row of pipelined requests would nest as deep.
            asyncio.get_running_loop().call_soon(self.received, b"")

    # ------------------------------------------------------------ the end

    def _refuse(self, error: RequestError) -> None:
        """Answer what cannot be read as a request, and close."""
        status, headers, body = http_answer.error_answer(error)
        headers += self._front.own_headers.of(None)
        self._write(http_answer.answer_head(status, headers, b"connection: close\r\n") + body)
        self._linger()

    @property
    def busy(self) -> bool:
        if self._front.drained:
            return self._transport is not None and self._transport.get_write_buffer_size() > 0
        return self._request is not None or self._closing or not self._reader.idle

    def last(self) -> None:
        self._keep_alive = False

    def drain(self, before: Front) -> None:
        self._front, self._keep_alive = before, False
        if not self.busy:
            self._close()

    def abort(self) -> None:
        """Close without another byte; a running answer is cancelled."""
        self._closing = True
        self._cancel()
        if self._transport is not None:
            self._transport.abort()

    def _cancel(self) -> None:
        attempt, self._attempt = self._attempt, None
        self._request = None
        if attempt is not None:
            attempt.cancel()

    def _close(self) -> None:
        """Close once the client has taken what is written."""
        if self._reader.broken or not self._reader.idle:
            self._linger()
        elif self._transport is not None:
            self._closing = True
            self._wait(self._limits.stall_timeout_s)
            self._turn.send(self._transport)
            self._transport.close()

    def _linger(self) -> None:
        """Close, though the client may still be sending; TLS has a goodbye of its own."""
        self._closing, transport = True, self._transport
        if transport is not None and not transport.is_closing():
            self._turn.send(transport)
            unread = transport.get_write_buffer_size()
            self._wait(self._limits.stall_timeout_s if unread else LINGER_S)
            (transport.write_eof if transport.can_write_eof() else transport.close)()

    def _leave(self) -> None:
        if self._transport is not None:
            self._turn.writes.leave(self._transport)
        self._closing, self._transport = True, None
        self._front.connections.discard(self)
        self._front.deadlines.forget(self)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._turn.put(self._transport, data)

    def _wait(self, seconds: float) -> None:
        self.deadline = self._front.clock.now() + seconds
