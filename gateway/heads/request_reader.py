"""Bytes of one client connection in, whole requests out; knows nothing of sockets."""

from dataclasses import dataclass

import msgspec

from radixgate.gateway.heads.request_head import (
    MAX_HEAD_BYTES,
    BadHead,
    ChunkedBody,
    HeadCache,
    RequestHead,
    too_large,
)

MAX_PIPELINED_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class FrontLimits:
    """What a client may take; each in seconds or bytes."""

    max_body_bytes: int
    head_timeout_s: float = 15.0  # from the first byte of a request to its last header
    body_timeout_s: float = 30.0  # between two pieces of a body
    idle_timeout_s: float = 75.0  # between two requests of a connection
    stall_timeout_s: float = 600.0  # for a reader that takes nothing more of its answer
    body_bytes_per_s: float = 500.0  # on average, after the first `body_timeout_s` of a body

    def piece_by(self, now: float, before: float, size: int) -> float:
        """When the next piece of a body must have come, after one of `size` bytes that had to be
        there by `before`. A client that sends single bytes gains no time by them."""
        return min(now + self.body_timeout_s, before + size / self.body_bytes_per_s)


class ReadRequest(msgspec.Struct, frozen=True, gc=False):
    """A request that can be acted upon."""

    head: RequestHead
    body: bytes
    # For a request that is not ours to answer: its bytes from the first on, and all behind them.
    # None: it is ours, and `body` is whole.
    replay: bytes | None = None


class RequestReader:
    """Reads requests one after the other.

    What comes in while one is answered is kept for later, up to MAX_PIPELINED_BYTES: beyond that it
    is dropped and the connection must close (`broken`).
    """

    def __init__(self, hot_paths: frozenset[bytes], limits: FrontLimits, heads: HeadCache) -> None:
        self._heads, self._counted = heads, heads.counted  # shared by all connections
        self._hot_paths = hot_paths
        self._max_body_bytes = limits.max_body_bytes
        self.unread = b""  # of the next request, while none is read
        # The last piece began what is unfinished now, a head or a body. Not kept of whole requests.
        self.just_begun = False
        self._head: RequestHead | None = None  # of the request whose body is being read
        self._body: ChunkedBody | _CountedBody | None = None
        self.broken = False  # bytes were dropped: nothing more can be read from this connection

    @property
    def idle(self) -> bool:
        """Between two requests, with nothing of the next one here."""
        return not self.unread and self._body is None

    @property
    def in_body(self) -> bool:
        return self._body is not None

    @property
    def awaits_continue(self) -> bool:
        """The client sends its body only after `100 Continue`, and none of it has come."""
        return self._head is not None and self._head.expects_continue and not self._begun

    @property
    def _begun(self) -> bool:
        return self._body is None or self._body.begun

    def keep(self, data: bytes) -> None:
        """Take what came while a request is being answered."""
        if len(self.unread) + len(data) > MAX_PIPELINED_BYTES:
            self.broken = True
            self.unread = b""
        elif not self.broken:
            self.unread += data

    def read(self, data: bytes) -> ReadRequest | None:
        """Take `data`; the next request if it is whole. Raises RequestError: refuse and close."""
        if not self.unread and self._body is None:
            # As nearly all come: in one piece, under a head that came before.
            end = data.find(b"\r\n\r\n") + 4
            known = self._counted.get(data[:end])
            if known is not None and len(data) - end == known.content_length:
                return ReadRequest(known, data[end:])
        return self._read(data)

    def _read(self, data: bytes) -> ReadRequest | None:
        if self._body is not None:
            self.just_begun = False
            return self._read_body(data)
        block = self.unread + data if self.unread else data
        while block.startswith(b"\r\n"):  # tolerated between requests, as llhttp does
            block = block[2:]
        end = block.find(b"\r\n\r\n") + 4
        if end < 4:
            self.just_begun = not self.unread
            self.unread = block
            _check_unfinished(block)
            return None
        if end > MAX_HEAD_BYTES:
            raise _head_too_large()
        head = self._heads.read(block[:end])
        if head.method != b"POST" or head.path not in self._hot_paths:
            self.unread = b""
            return ReadRequest(head, b"", block)
        body_end = end + head.content_length
        if body_end > len(block) or head.chunked or head.content_length > self._max_body_bytes:
            return self._begin_body(head, block, end)
        self._heads.keep_counted(block[:end], head)
        self.unread = block[body_end:]
        return ReadRequest(head, block[end:body_end])

    def _begin_body(self, head: RequestHead, block: bytes, begin: int) -> ReadRequest | None:
        size = head.content_length
        if size > self._max_body_bytes:
            raise too_large(size, self._max_body_bytes)
        self.unread, self.just_begun = b"", True
        self._head = head
        self._body = ChunkedBody(self._max_body_bytes) if head.chunked else _CountedBody(size)
        # A body is copied once, into one piece.
        return self._read_body(memoryview(block)[begin:]) if len(block) > begin else None

    def _read_body(self, data: bytes | memoryview) -> ReadRequest | None:
        head, body = self._head, self._body
        assert head is not None
        assert body is not None
        body.feed(data)
        if not body.complete:
            return None
        self._head = self._body = None
        if isinstance(body, ChunkedBody):
            # llhttp does not say where the body ended: what came behind it in one piece is lost.
            self.broken = body.surplus
        else:
            self.unread = body.rest
        return ReadRequest(head, body.content())


class _CountedBody:
    """Collects a body of known length; what comes behind it is the next request's."""

    def __init__(self, length: int) -> None:
        self._missing = length
        self._parts: list[bytes | memoryview] = []
        self.rest = b""

    @property
    def complete(self) -> bool:
        return self._missing == 0

    @property
    def begun(self) -> bool:
        return bool(self._parts)

    def feed(self, piece: bytes | memoryview) -> None:
        part = piece[: self._missing]
        self.rest = bytes(piece[self._missing :])
        self._parts.append(part)
        self._missing -= len(part)

    def content(self) -> bytes:
        return b"".join(self._parts)


def _check_unfinished(block: bytes) -> None:
    """Refuse early what no further byte can turn into a request."""
    if len(block) > MAX_HEAD_BYTES:
        raise _head_too_large()
    if block and block != b"\r" and not block[:1].isalpha():
        raise BadHead("this is not HTTP")
    if block.count(b"\n") != block.count(b"\r\n"):
        raise BadHead("malformed request: bare LF in the head")


def _head_too_large() -> BadHead:
    return BadHead(f"the head of a request may have at most {MAX_HEAD_BYTES} bytes")
