"""Requests good and bad, of one seed: what clients and attackers send, and how it arrives."""

import json
import random
from dataclasses import dataclass
from itertools import pairwise

HOT = (b"/v1/chat/completions", b"/v1/completions", b"/generate")
_ELSEWHERE = (b"/health", b"/v1/models", b"/workers", b"/nowhere", b"/generate/", b"//generate")
_METHODS = (b"GET", b"HEAD", b"PUT", b"OPTIONS", b"CONNECT", b"post", b"P\x00ST", b"", b"PRI")
_VERSIONS = (b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/1.10", b"http/1.1", b"HTTP/1.1 ", b"")
_FIELDS = (
    b"Connection: close",
    b"Connection: keep-alive",
    b"Connection: upgrade, content-length",
    b"Upgrade: h2c",
    b"Expect: 100-continue",
    b"Expect: everything",
    b"X-Request-Id: given",
    b"X-Long: " + b"y" * 3_000,
    b"Cookie: a=b; c=d",
    b"x-caf\xc3\xa9: y",
    b"X-Latin: caf\xe9",
    b"X-Empty:",
    b"X-Fold: a\r\n b",
    b"X-Fold: a\r\n\tContent-Length: 3",
    b"X-LF: a\nContent-Length: 5",
    b"X-CR: a\rTransfer-Encoding: chunked",
    b"X-NUL: a\x00b",
    b"X\x00Name: y",
    b"X Name: y",
    b"X-Colon : y",
    b" X-Space: y",
    b": nameless",
    b"no-colon",
    b"Host: other",
    b"Content-Length: 7",
    b"Content-Length: 0",
    b"Content-Length: -1",
    b"Content-Length: +5",
    b"Content-Length: 5, 5",
    b"Content-Length: 0x10",
    b"Content-Length: 99999999999999999999999",
    b"Content-Length : 5",
    b"Content_Length: 5",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: Chunked",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding:\x0bchunked",
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding\t: chunked",
)
_PIECES = (
    b"\x00",
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b" ",
    b"\t",
    b":",
    b";",
    b",",
    b"\xff",
    b"0",
)
_SMUGGLED = b"POST /generate HTTP/1.1\r\nHost: s\r\nContent-Length: 16\r\n\r\n"


@dataclass(frozen=True)
class Sent:
    """What one connection carries: its bytes, in pieces, and how the client ends."""

    pieces: list[bytes]
    end: str  # wait, half-close, close, reset
    sound: int  # so many whole and ordinary requests, and nothing else; -1: something is odd

    @property
    def raw(self) -> bytes:
        return b"".join(self.pieces)


def connection(rng: random.Random, number: int) -> Sent:
    """Number `number` of this seed; its requests carry marks made of it."""
    count = rng.choice((1, 1, 2, 3, 8))
    odd = rng.random() < 0.7
    requests = [_request(rng, f"{number}-{at}", odd) for at in range(count)]
    raw = bytearray(b"".join(requests))
    if odd:
        for _ in range(rng.choice((0, 0, 1, 2))):
            _damage(rng, raw)
    end = rng.choice(("wait", "wait", "wait", "half-close", "close", "reset"))
    return Sent(_cut(rng, bytes(raw)), end, -1 if odd else count)


def _request(rng: random.Random, mark: str, odd: bool) -> bytes:
    body = _json(rng, mark)
    chunked = rng.random() < 0.3
    fields = [b"Host: gateway"]
    if chunked:
        fields.append(b"Transfer-Encoding: chunked")
        sent = _chunked(rng, body, odd)
    else:
        fields.append(b"Content-Length: %d" % len(body))
        sent = body
    method, path, version = b"POST", rng.choice(HOT[:2]), b"HTTP/1.1"
    if odd:
        fields += rng.sample(_FIELDS, rng.choice((0, 1, 1, 2)))
        if rng.random() < 0.1:
            fields.pop(0)
        rng.shuffle(fields)
        method, path, version = _odd_line(rng, path)
        if rng.random() < 0.02:
            fields.append(b"X-Huge: " + b"h" * rng.choice((60_000, 70_000)))
    end = b"\n" if odd and rng.random() < 0.03 else b"\r\n"
    return end.join([b"%b %b %b" % (method, path, version), *fields, b"", b""]) + sent


def _odd_line(rng: random.Random, path: bytes) -> tuple[bytes, bytes, bytes]:
    method, version = b"POST", b"HTTP/1.1"
    match rng.randrange(12):
        case 0:
            method = rng.choice(_METHODS)
        case 1:
            version = rng.choice(_VERSIONS)
        case 2:
            path = rng.choice(_ELSEWHERE)
        case 3:
            path = rng.choice((b"http://gateway", b"https://other:99", b"ftp://x@y")) + path
        case 4:
            path += rng.choice((b"?a=b", b"#x", b"?" + b"q" * 9_000, b"%00", b"\xff"))
        case 5:
            path = path.replace(b"/", rng.choice((b"//", b"/./", b"/ ", b"\\")), 1)
    return method, path, version


def _json(rng: random.Random, mark: str) -> bytes:
    content = rng.choice(("hi", "x" * 5_000, "caf\u00e9", "a\r\n\r\n" + _SMUGGLED.decode()))
    value = {"model": "toy", "mark": mark, "stream": rng.random() < 0.5, "prompt": content}
    if rng.random() < 0.05:
        value["prompt"] = "x" * 150_000
    return json.dumps({**value, "messages": [{"role": "user", "content": content}]}).encode()


def _chunked(rng: random.Random, body: bytes, odd: bool) -> bytes:
    out = b""
    while body:
        size = rng.choice((1, 7, 1_000, 100_000)) if len(body) < 300 else rng.choice((500, 100_000))
        piece, body = body[:size], body[size:]
        line = b"%x" % len(piece) if rng.random() < 0.5 else b"%X" % len(piece)
        if odd and rng.random() < 0.1:
            line = rng.choice(
                (b"000" + line, line + b";a=b", line + b" ", b"0x" + line, b"-1", b"f" * 17, b"")
            )
        gap = b"\n" if odd and rng.random() < 0.03 else b"\r\n"
        out += line + gap + piece + gap
    last = b"0\r\n" if not odd or rng.random() < 0.95 else rng.choice((b"", b"00\r\n", b"0\n"))
    trailer = b"" if rng.random() < 0.8 else b"X-Trailer: t\r\n"
    return out + last + trailer + b"\r\n"


def _damage(rng: random.Random, raw: bytearray) -> None:
    place = rng.randrange(len(raw) + 1)
    match rng.randrange(6):
        case 0:
            raw[place:place] = rng.choice(_PIECES)
        case 1:
            del raw[place : place + rng.choice((1, 2, 20))]
        case 2:
            del raw[place:]
        case 3:
            raw[place:place] = _SMUGGLED + b'{"mark":"smugl"}'
        case 4 if place < len(raw):
            raw[place] = rng.randrange(256)
        case 5:
            raw[place:place] = raw[place : place + 40]


def _cut(rng: random.Random, raw: bytes) -> list[bytes]:
    match rng.randrange(4):
        case 0:
            return [raw]
        case 1 if len(raw) < 3_000:
            return [raw[at : at + 1] for at in range(len(raw))]
    places = sorted(rng.randrange(len(raw) + 1) for _ in range(rng.choice((1, 2, 10))))
    bounds = [0, *places, len(raw)]
    return [raw[a:b] for a, b in pairwise(bounds) if a < b]
