"""Raw HTTP/1.1 connections to one worker, kept alive and used again, the last one first."""

import asyncio
import ssl
from typing import cast

import httptools

from radixgate.clock import Clock
from radixgate.errors import WorkerFailed, WorkerUnreachable
from radixgate.gateway.answer_heads import AnswerHeads
from radixgate.gateway.attempt import Headers
from radixgate.gateway.deadlines import NEVER, Deadlines
from radixgate.gateway.outbox import AT_ONCE_BYTES, Outbox
from radixgate.gateway.upstream_listener import Listener

# A worker's head longer than this is nonsense, and must not fill the gateway.
MAX_ANSWER_HEAD_BYTES = 131_072
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))


class UpstreamConnection(asyncio.Protocol):
    """One connection: a request out, its answer in, then back to the pool."""

    def __init__(self, pool: "UpstreamPool") -> None:
        self.idle_until = NEVER
        self.used = False  # it has carried an exchange before this one
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._listener: Listener | None = None
        self._answered = False
        self._headed = False  # the head of the answer is whole, and no interim one
        self._headers: Headers = []
        self._head_bytes = 0
        self._framed = False  # the end of the body shows before the end of the connection
        self._parts: list[bytes] = []  # of the body, in the piece being parsed
        self._own_parts = 0  # a second answer that nobody asked for is no part of the first
        self._status = 0  # of a head that the listener has not heard of
        self._complete = self._keeps = False  # the answer is whole; the worker lets us go on
        self._surplus = False  # more came than was asked for
        self._paused = False
        # Called for each chunk of a stream: no frame of Python's.
        self.on_body = self._parts.append
        self._parser = httptools.HttpResponseParser(self)

    def send(self, head: bytes, body: bytes, listener: Listener) -> None:
        """Send a request; the connection must be idle. `head` ends with its blank line."""
        assert self._transport is not None
        self._listener = listener
        self._answered = self._headed = False
        # A large body is not copied to stand behind its head.
        if len(body) < AT_ONCE_BYTES:
            self._pool.outbox.put(self._transport, head + body)
        else:
            self._transport.writelines((head, body))

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def pause(self) -> None:
        self._paused = True
        if self._transport is not None and self.usable:
            self._transport.pause_reading()

    def resume(self) -> None:
        self._paused = False
        if self._transport is not None and self.usable:
            self._transport.resume_reading()

    def abort(self) -> None:
        """Break off: the worker sees a reset, the listener hears nothing more."""
        self._listener = None
        if self._transport is not None:
            self._transport.abort()

    # ------------------------------------------------------------ from the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._pool.forget(self)
        # Without a length the end of the connection ends the body, once there was a whole head.
        if exc is None and self._headed and not self._framed:
            self._end()
            return
        how = f"was lost ({exc})" if exc is not None else "was closed by the worker"
        when = "in the middle of an answer" if self._answered else "before an answer"
        self._give_up(f"the connection {how} {when}")

    def data_received(self, data: bytes) -> None:
        if self._listener is None:
            # Nobody asked: whatever it is, it cannot be the answer to the next request.
            self.abort()
            return
        self._pool.heard = True
        if self._answered_at_once(data):
            return
        wrong = ""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as exc:
            wrong = f"the answer is not HTTP: {exc}"
        except httptools.HttpParserUpgrade:
            wrong = "the worker switched protocols unasked"
        if self._surplus:
            del self._parts[self._own_parts :]
        begins, self._answered = not self._answered, True
        self._surplus = self._surplus or (bool(wrong) and self._complete)
        if begins and self._complete and self._reusable and self._parts:
            self._pool.heads.learn(data, self._status, self._headers)
        if begins and self._status:
            self._headers = self._pool.heads.same(data, self._status, self._headers)
        self._deliver()
        if wrong:
            self._give_up(wrong)

    def _answered_at_once(self, data: bytes) -> bool:
        """A whole answer in one piece, under a head that was read before: it is not parsed."""
        if self._answered or self._surplus:
            return False
        known = self._pool.heads.find(data)
        if known is None:
            return False
        listener, self._listener = self._listener, None
        assert listener is not None
        self._answered = self._framed = self._keeps = True
        self._go_back()
        listener.on_answer(known, data[known.size :])
        return True

    def _deliver(self) -> None:
        """Hand on what the last piece held. The listener may cancel at each step."""
        if self._status and self._listener is not None:
            status, self._status = self._status, 0
            self._listener.on_response(status, self._headers)
        if self._parts:
            data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts.clear()
            if self._listener is not None:
                self._listener.on_data(data)
        if self._complete:
            self._end()

    def _end(self) -> None:
        """The answer is whole. The connection goes back first: the listener may need one."""
        listener, self._listener = self._listener, None
        self._go_back()
        if listener is not None:
            listener.on_complete()

    def _go_back(self) -> None:
        """To the pool, if it can carry another exchange."""
        self.used = True
        if self._reusable:
            self._complete = False
            if self._paused:
                self.resume()
            self._pool.release(self)
        else:
            self.abort()

    @property
    def _reusable(self) -> bool:
        return self._keeps and self._framed and not self._surplus and self.usable

    def _give_up(self, why: str) -> None:
        listener = self._listener
        self.abort()
        if listener is not None:
            listener.on_broken(self._pool.failure(why), self._answered)

    # ------------------------------------------------------------ from the parser

    def on_message_begin(self) -> None:
        if self._complete:
            if not self._surplus:
                self._surplus, self._own_parts = True, len(self._parts)
            return
        self._headers = []
        self._head_bytes = 0
        self._framed = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MAX_ANSWER_HEAD_BYTES:
            raise ValueError(f"headers over {MAX_ANSWER_HEAD_BYTES} bytes")
        if self._surplus or self._headed:  # a trailer: it is dropped
            return
        name = name.lower()
        self._headers.append((name, value))
        if name in _FRAMING:
            self._framed = True

    def on_headers_complete(self) -> None:
        status: int = self._parser.get_status_code()
        if status < 200 or self._surplus:
            return
        if status in (204, 304):
            self._framed = True
        self._status = status
        self._headed = True

    def on_message_complete(self) -> None:
        # An interim answer (100, 103) is complete too, and only announces the real one.
        if self._parser.get_status_code() >= 200 and not self._complete:
            self._complete = True
            # Asked later, the parser would speak of a message that has not begun.
            self._keeps = self._parser.should_keep_alive()


class UpstreamPool:
    """The connections to one worker. Running ones are not limited; idle ones are, by `max_idle`."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        clock: Clock,
        deadlines: Deadlines,
        outbox: Outbox,
        max_idle: int,
        idle_timeout_s: float,
        credentials: bytes = b"",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`credentials`: a header line of every request; empty: none. `tls`: None: in the clear."""
        self.host, self.port, self._tls = host, port, tls
        self.authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.url = f"{'http' if tls is None else 'https'}://{self.authority}"
        self.credentials = credentials
        self.heard = False  # bytes of an answer have come; who asks takes it back
        self._clock = clock
        self.deadline = NEVER  # of the connection that has been idle for longest
        self._deadlines = deadlines
        self._max_idle = max_idle
        self._idle_timeout_s = idle_timeout_s
        self.heads, self.outbox = AnswerHeads(), outbox
        self._idle: dict[UpstreamConnection, None] = {}  # the last one in is the warmest
        self._open: set[UpstreamConnection] = set()

    def failure(self, why: str) -> WorkerFailed:
        return WorkerFailed(f"worker {self.url}: {why}")

    def take_idle(self) -> UpstreamConnection | None:
        """A kept connection, or None: then `connect`. O(1)."""
        while self._idle:
            connection = self._idle.popitem()[0]
            if connection.usable:
                return connection
        return None

    async def connect(self, timeout_s: float) -> UpstreamConnection:
        """A fresh connection. Raises WorkerUnreachable; WorkerFailed if it takes too long."""
        self._deadlines.watch(self)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                _, connection = await loop.create_connection(
                    lambda: UpstreamConnection(self), self.host, self.port, ssl=self._tls
                )
        except TimeoutError as exc:
            raise self.failure(f"no connection within {timeout_s:g} s") from exc
        except OSError as exc:
            raise WorkerUnreachable(f"worker {self.url}: {exc.strerror or exc}") from exc
        self._open.add(connection)
        return connection

    def release(self, connection: UpstreamConnection) -> None:
        """Keep a connection for the next request, or close it if enough are kept."""
        if len(self._idle) >= self._max_idle:
            connection.abort()
            return
        connection.idle_until = until = self._clock.now() + self._idle_timeout_s
        self._idle[connection] = None
        if until < self.deadline:
            self.deadline = until

    def on_deadline(self) -> None:
        """Close what has been idle for too long; the longest idle come first."""
        now = self._clock.now()
        for connection in [one for one in self._idle if one.idle_until <= now]:
            connection.abort()
            self._idle.pop(connection, None)
        self.deadline = min((one.idle_until for one in self._idle), default=NEVER)

    def forget(self, connection: UpstreamConnection) -> None:
        """The connection is lost."""
        self._open.discard(connection)
        self._idle.pop(connection, None)

    def close(self) -> None:
        """Close every connection, idle or not; running exchanges hear nothing more."""
        self._deadlines.forget(self)
        for connection in list(self._open):
            connection.abort()
