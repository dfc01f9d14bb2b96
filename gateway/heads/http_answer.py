"""The bytes of an answer's head, with the framing set anew, and of the gateway's own errors."""

from http import HTTPStatus

from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.heads.hop_headers import find
from radixgate.proto.error_body import error_body, retry_after

JSON = (b"content-type", b"application/json")
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
END_OF_CHUNK = b"\r\n"
END_AND_LAST_CHUNK = END_OF_CHUNK + LAST_CHUNK
CHUNKED = b"transfer-encoding: chunked\r\n"

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


def head_lines(status: int, headers: Headers) -> bytes:
    """Status line and `headers`, each with its line end."""
    line = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} \r\n".encode()
    if not headers:
        return line
    # A third of the time of formats.
    return b"".join((line, b"\r\n".join(map(b": ".join, headers)), b"\r\n"))


def fields_of(lines: bytes) -> Headers:
    """Of header lines, each with its line end."""
    parts = [line.partition(b": ") for line in lines.splitlines()]
    return [(name, value) for name, _, value in parts]


def answer_head(status: int, headers: Headers, more: bytes) -> bytes:
    """Status line, `headers`, the ready-made header lines `more`, and the blank line."""
    return b"%b%b\r\n" % (head_lines(status, headers), more)


def has_no_body(status: int) -> bool:
    """Such an answer ends with its head, and carries no framing either."""
    return status < 200 or status in (204, 304)


def is_framed(status: int, headers: Headers) -> bool:
    """The end of the body is known from the head alone."""
    return find(headers, b"content-length") is not None or has_no_body(status)


def error_answer(error: RadixgateError) -> tuple[int, Headers, bytes]:
    """Status, headers and OpenAI-shaped body for `error`."""
    body = error_body(error)
    headers = [JSON, (b"content-length", b"%d" % len(body))]
    after = retry_after(error)
    if after is not None:
        headers.append((b"retry-after", after.encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if error.status == 415:
        headers.append((b"accept-encoding", b"identity"))
    return error.status, headers, body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
