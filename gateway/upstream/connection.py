"""One raw HTTP/1.1 connection to a worker: a request out, its answer in, and so on."""

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

import httptools

from radixgate.errors import InternalFault, RadixgateError, WorkerFailed
from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.heads.answer_heads import AnswerHead, AnswerHeads
from radixgate.gateway.heads.chunks import whole_chunks
from radixgate.gateway.loop.deadlines import NEVER
from radixgate.gateway.loop.loop_turn import AT_ONCE_BYTES, LoopTurn
from radixgate.gateway.upstream.late_bytes import LateBytes
from radixgate.gateway.upstream.listener import Listener

# A worker's head longer than this is nonsense, and must not fill the gateway.
MAX_ANSWER_HEAD_BYTES = 131_072
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))


class Pool(Protocol):
    """Where a connection is kept between two exchanges."""

    heard: bool  # bytes of an answer have come; who asks takes it back
    heads: AnswerHeads
    turn: LoopTurn

    def failure(self, why: str) -> WorkerFailed: ...

    def release(self, connection: "UpstreamConnection") -> None:
        """It is idle: kept for the next request, or closed if enough are kept."""
        ...

    def forget(self, connection: "UpstreamConnection") -> None:
        """It is lost."""
        ...


class UpstreamConnection(asyncio.Protocol):
    """One connection: a request out, its answer in, then back to the pool."""

    def __init__(self, pool: Pool) -> None:
        self.idle_until = NEVER
        self.used, self._pool = False, pool  # used: it has carried an exchange before this one
        self._transport: asyncio.Transport | None = None
        self._listener: Listener | None = None
        self._answered = self._paused = False
        self._headed = False  # the head of the answer is whole, and no interim one
        self._headers: Headers = []
        self._head_bytes = 0
        self._framed = False  # the end of the body shows before the end of the connection
        self._parts: list[bytes] = []  # of the body, in the piece being parsed
        self._own_parts = 0  # a second answer that nobody asked for is no part of the first
        self._status = 0  # of a head that the listener has not heard of
        self._complete = self._keeps = False  # the answer is whole; the worker lets us go on
        self._surplus = False  # more came than was asked for
        self._unparsed = b""  # the head of an answer of which the parser has seen nothing
        self.unsent: Callable[[], int] = int  # bytes of a large request that wait to go out
        self.queued = 0  # pieces that wait to be received
        self.late: LateBytes  # of its transport
        self.on_body = self._parts.append  # for each chunk of a stream: no frame of Python's
        self._parser = httptools.HttpResponseParser(self)

    def send(self, head: bytes, body: bytes, listener: Listener) -> None:
        """Send a request; the connection must be idle. `head` ends with its blank line."""
        assert self._transport is not None
        self._listener = listener
        self._answered = self._headed = False
        self._unparsed = b""
        # A large body is not copied to stand behind its head.
        if len(body) < AT_ONCE_BYTES:
            self._pool.turn.put(self._transport, head + body)
        else:
            self._transport.writelines((head, body))
            self.unsent = self._transport.get_write_buffer_size

    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def pause(self) -> None:
        self._paused = True
        if self._transport is not None and self.is_open():
            self._transport.pause_reading()

    def resume(self) -> None:
        self._paused = False
        if self._transport is not None and self.is_open():
            self._transport.resume_reading()

    def abort(self) -> None:
        """Break off: the worker sees a reset, the listener hears nothing more."""
        self._listener = None
        if self._transport is not None:
            self._transport.abort()

    # ------------------------------------------------------------ from the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._pool.turn.writes.join(self._transport)
        self.late = LateBytes(self._transport, self._pool.turn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.turn.answers.work_off()
        if self._transport is not None:
            self._pool.turn.writes.leave(self._transport)
        self._transport = None
        self._pool.forget(self)
        exc = exc or self.late.error
        # Without a length the end of the connection ends the body, once there was a whole head.
        if exc is None and self._headed and not self._framed:
            self._end()
            return
        how = f"was lost ({exc})" if exc is not None else "was closed by the worker"
        when = "in the middle of an answer" if self._answered else "before an answer"
        self._give_up(f"the connection {how} {when}")

    def data_received(self, data: bytes) -> None:
        # Here too: before the turn ends it may be taken for a request.
        if self._listener is None:
            self.abort()
        else:
            self.queued += 1
            self._pool.turn.answers.take(self, data)

    def received(self, data: bytes) -> None:
        self.queued -= 1
        if self._listener is None:
            # Nobody asked: whatever it is, it cannot be the answer to the next request.
            self.abort()
            return
        self._pool.heard = True
        if self._unparsed:
            data = self.late.behind(data, self.queued)
            if self._take_chunks(data, None):
                return
            self._catch_up()
        elif not (self._answered or self._surplus):
            known = self._pool.heads.find(data)  # then it is not parsed
            if known is not None:
                if known.whole is not None:
                    self._answer_at_once(known.status, known.headers, data[known.size :])
                    return
                data = self.late.behind(data, self.queued)
                if self._take_chunks(data, known):
                    return
        self._parse(data)

    def _take_chunks(self, data: bytes, begins: AnswerHead | None) -> bool:
        """Of an answer that begins with this head, or has begun. False: they are to be parsed."""
        chunks = whole_chunks(data, 0 if begins is None else begins.size)
        if chunks is None:
            return False
        body, ends = chunks
        if begins is not None:
            if ends:
                self._answer_at_once(begins.status, begins.headers, body)
                return True
            self._unparsed = data[: begins.size]
            self._answered = self._headed = self._framed = self._keeps = True
            assert self._listener is not None
            self._listener.on_response(begins.status, begins.headers)
        if body and self._listener is not None:
            self._listener.on_data(body)
        if ends:
            self._end()
        return True

    def _catch_up(self) -> None:
        """The parser is to read on behind whole chunks: it has not seen their head."""
        self._headed = False
        self._parser.feed_data(self._unparsed)
        self._unparsed, self._status = b"", 0  # of what the listener has heard

    def _parse(self, data: bytes) -> None:
        wrong = ""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as exc:
            wrong = f"the answer is not HTTP: {exc.__context__ or exc}"
        except httptools.HttpParserUpgrade:
            wrong = "the worker switched protocols unasked"
        if self._surplus:
            del self._parts[self._own_parts :]
        begins, self._answered = not self._answered, True
        self._surplus = self._surplus or (bool(wrong) and self._complete)
        if begins and self._status:
            heads, status = self._pool.heads, self._status
            headers = self._headers = heads.same(data, status, self._headers)
            stays = self._keeps if self._complete else self._parser.should_keep_alive()
            if stays and not wrong:
                heads.learn_chunked(data, status, headers)
            if self._complete and not wrong and self._reusable and self._parts:
                heads.learn(data, status, headers)
                self._answer_at_once(status, headers, self._take_body())
                return
        self._deliver()
        if wrong:
            self._give_up(wrong)

    def broke(self, exc: Exception) -> None:
        self._answered = True  # the worker has done its part, and is not asked again
        self._break(InternalFault())

    def _answer_at_once(self, status: int, headers: Headers, body: bytes) -> None:
        """A whole answer in one piece. First the connection goes back, as one may be needed."""
        listener, self._listener = self._listener, None
        assert listener is not None
        self.used = self._answered = True
        self._status, self._complete = 0, False
        if self._paused:
            self.resume()
        self._pool.release(self)
        listener.on_answer(status, headers, body)

    def _deliver(self) -> None:
        """Hand on what the last piece held. The listener may cancel at each step."""
        if self._status and self._listener is not None:
            status, self._status = self._status, 0
            self._listener.on_response(status, self._headers)
        if self._parts:
            data = self._take_body()
            if self._listener is not None:
                self._listener.on_data(data)
        if self._complete:
            self._end()

    def _take_body(self) -> bytes:
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        return data

    def _end(self) -> None:
        """The answer is whole. The connection goes back first: the listener may need one."""
        listener, self._listener = self._listener, None
        self._go_back()
        if listener is not None:
            listener.on_complete()

    def _go_back(self) -> None:
        """To the pool, if it can carry another exchange."""
        self.used = True
        if not self._reusable:
            self.abort()
            return
        self._complete = False
        if self._paused:
            self.resume()
        self._pool.release(self)

    @property
    def _reusable(self) -> bool:
        return self._keeps and self._framed and not self._surplus

    def _give_up(self, why: str) -> None:
        self._break(self._pool.failure(why))

    def _break(self, error: RadixgateError) -> None:
        listener = self._listener
        self.abort()
        if listener is not None:
            listener.on_broken(error, self._answered)

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
        if name in _FRAMING and value.strip().lower() != b"identity":
            self._framed = True

    def on_headers_complete(self) -> None:
        status: int = self._parser.get_status_code()
        if status < 200 or self._surplus:
            return
        self._framed = self._framed or status in (204, 304)
        self._status, self._headed = status, True

    def on_message_complete(self) -> None:
        # An interim answer (100, 103) is complete too, and only announces the real one.
        if self._parser.get_status_code() >= 200 and not self._complete:
            self._complete = True
            # Asked later, the parser would speak of a message that has not begun.
            self._keeps = self._parser.should_keep_alive()
