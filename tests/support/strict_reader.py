"""A second opinion on a connection's bytes: the requests they hold by the strictest reading.

Written apart from the gateway's own reader, by regular expressions over whole input; slow, and with
no tolerance but for what RFC 9112 lets a server pass over.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_LINE = re.compile(rb"(%b) ([!-~\x80-\xff]+) HTTP/1\.([01])" % _TOKEN)
_FIELD = re.compile(rb"(%b):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*" % _TOKEN)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*)?\r\n")
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#]*")


class Rest(StrEnum):
    """What follows the last whole request."""

    NOTHING = "nothing"
    UNFINISHED = "unfinished"
    REFUSED = "refused"
    HANDED_OVER = "handed over"  # another endpoint: the application's, to the connection's end


@dataclass
class Reading:
    bodies: list[bytes] = field(default_factory=list)  # of generation requests, in order
    rest: Rest = Rest.NOTHING


class _Refused(Exception):
    pass


class _Unfinished(Exception):
    pass


def read_strictly(raw: bytes, hot_paths: frozenset[bytes]) -> Reading:
    """All that a front may make of these bytes: it may refuse more, and never read another way."""
    reading = Reading()
    try:
        while raw := _without_empty_lines(raw):
            head, blank, raw = raw.partition(b"\r\n\r\n")
            if not blank:
                reading.rest = Rest.UNFINISHED
                return reading
            method, path, fields = _head(head)
            if method != b"POST" or path not in hot_paths:
                reading.rest = Rest.HANDED_OVER
                return reading
            body, raw = _body(fields, raw)
            reading.bodies.append(body)
    except _Refused:
        reading.rest = Rest.REFUSED
    except _Unfinished:
        reading.rest = Rest.UNFINISHED
    return reading


def _without_empty_lines(raw: bytes) -> bytes:
    while raw.startswith(b"\r\n"):
        raw = raw[2:]
    return raw


def _head(head: bytes) -> tuple[bytes, bytes, dict[bytes, list[bytes]]]:
    line, *lines = head.split(b"\r\n")
    parts = _LINE.fullmatch(line)
    if parts is None:
        raise _Refused
    method, target, minor = parts.groups()
    fields: dict[bytes, list[bytes]] = {}
    for one in lines:
        named = _FIELD.fullmatch(one)
        if named is None:
            raise _Refused
        fields.setdefault(named[1].lower(), []).append(named[2])
    if len(fields.get(b"host", ())) > 1 or (minor == b"1" and b"host" not in fields):
        raise _Refused
    if b"transfer-encoding" in fields and minor == b"0":
        raise _Refused
    path = _ABSOLUTE.sub(b"", target.partition(b"#")[0], count=1).partition(b"?")[0] or b"/"
    return method, path, fields


def _body(fields: dict[bytes, list[bytes]], raw: bytes) -> tuple[bytes, bytes]:
    lengths, codings = fields.get(b"content-length", []), fields.get(b"transfer-encoding", [])
    if len(lengths) > 1 or (lengths and codings):
        raise _Refused
    if codings:
        if [coding.lower() for coding in codings] != [b"chunked"]:
            raise _Refused
        return _chunks(raw)
    if not lengths:
        return b"", raw
    if not re.fullmatch(rb"[0-9]{1,15}", lengths[0]):
        raise _Refused
    length = int(lengths[0])
    if len(raw) < length:
        raise _Unfinished
    return raw[:length], raw[length:]


def _chunks(raw: bytes) -> tuple[bytes, bytes]:
    content = b""
    while True:
        line = _CHUNK.match(raw)
        if line is None:
            # Whether more bytes could make it a chunk or not: no request has come of it.
            raise _Unfinished if b"\n" not in raw[:1000] else _Refused
        size = int(line[1], 16)
        raw = raw[line.end() :]
        if size == 0:
            break
        if len(raw) < size + 2:
            raise _Unfinished
        if raw[size : size + 2] != b"\r\n":
            raise _Refused
        content += raw[:size]
        raw = raw[size + 2 :]
    while not raw.startswith(b"\r\n"):
        trailer, end, raw = raw.partition(b"\r\n")
        if not end:
            raise _Unfinished
        if _FIELD.fullmatch(trailer) is None:
            raise _Refused
    return content, raw[2:]
