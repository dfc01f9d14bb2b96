"""Why a gRPC call has ended, in words: from trailers, resets and farewells of HTTP/2."""

from collections.abc import Iterable
from urllib.parse import unquote

from h2.errors import ErrorCodes

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


def farewell(code: int, said: bytes) -> str:
    words = f", {_text(said)}" if said else ""
    return f"the worker is going away: {_error(code)}{words}"


def _status(code: bytes) -> str:
    known = code.isdigit() and len(code) < 3 and int(code) < len(_STATUSES)
    return _STATUSES[int(code)] if known else f"gRPC status {_text(code)}"


def _error(code: int) -> str:
    return ErrorCodes(code).name if code in ErrorCodes.__members__.values() else f"error {code}"


def _text(value: bytes) -> str:
    return value[:_MAX_SAID].decode("utf-8", "replace")
