"""Why a gRPC call has ended, in words: from trailers, resets and goodbyes of HTTP/2."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from h2.errors import ErrorCodes

from radixgate.gateway.upstream.grpc_messages import BrokenStream

CLOSED_BY_WORKER = "the worker closed the stream"
# By number, https://grpc.io/docs/guides/status-codes/
_STATUSES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
_MAX_SAID = 500  # of what a worker says of itself
_GOODBYE = struct.Struct(">II")  # last stream, error code
_STREAM_BITS = 0x7FFF_FFFF

Headers = Iterable[tuple[bytes, bytes]]


def wrong_head(headers: Headers) -> str | None:
    """Why this is no head of a gRPC answer; None: it is one."""
    fields = dict(headers)
    status = fields.get(b":status", b"")
    if status != b"200":
        return f"HTTP status {_text(status)} instead of a gRPC answer"
    kind = fields.get(b"content-type", b"")
    if not kind.startswith(b"application/grpc"):
        return f"content of type {_text(kind)!r} instead of gRPC"
    encoding = fields.get(b"grpc-encoding", b"identity")
    if encoding != b"identity":
        return f"messages in {_text(encoding)}, which was not asked for"
    return None


def status_in(headers: Headers) -> str | None:
    """What a call's trailers say; None: they say nothing."""
    fields = dict(headers)
    code = fields.get(b"grpc-status")
    if code is None:
        return None
    if code == b"0":
        return CLOSED_BY_WORKER
    said = unquote(_text(fields.get(b"grpc-message", b"")), errors="replace")
    return said or _status(code)


def reset(code: int) -> str:
    return f"the stream was reset: {_error(code)}"


@dataclass(frozen=True, slots=True)
class Goodbye:
    """What a frame of HTTP/2 says that ends a connection, or what begins on it from now on."""

    last_stream: int
    code: int
    said: bytes

    @classmethod
    def read(cls, body: bytes) -> "Goodbye":
        """Raises BrokenStream."""
        if len(body) < _GOODBYE.size:
            raise BrokenStream("a goodbye that is too short")
        last, code = _GOODBYE.unpack_from(body)
        return cls(last & _STREAM_BITS, code, body[_GOODBYE.size :])

    @property
    def finds_pings_too_many(self) -> bool:
        return self.code == ErrorCodes.ENHANCE_YOUR_CALM and self.said == b"too_many_pings"

    def leaves(self, stream: int) -> bool:
        """There are to be no new streams; this one goes on."""
        return self.code == ErrorCodes.NO_ERROR and self.last_stream >= stream

    @property
    def why(self) -> str:
        words = f", {_text(self.said)}" if self.said else ""
        return f"the worker is going away: {_error(self.code)}{words}"


def _status(code: bytes) -> str:
    known = code.isdigit() and len(code) < 3 and int(code) < len(_STATUSES)
    return _STATUSES[int(code)] if known else f"gRPC status {_text(code)}"


def _error(code: int) -> str:
    return ErrorCodes(code).name if code in ErrorCodes.__members__.values() else f"error {code}"


def _text(value: bytes) -> str:
    return value[:_MAX_SAID].decode("utf-8", "replace")
