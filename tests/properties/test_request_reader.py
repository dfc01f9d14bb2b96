"""However hostile the bytes and however they are cut, the front reads them one way or refuses."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radixgate.errors import RequestError
from radixgate.gateway.heads.request_head import HeadCache
from radixgate.gateway.heads.request_reader import FrontLimits, RequestReader

HOT = frozenset((b"/generate",))
LINES = (
    b"POST /generate HTTP/1.1\r\n",
    b"POST /generate HTTP/1.0\r\n",
    b"GET /health HTTP/1.1\r\n",
    b"POST  /generate HTTP/1.1\r\n",
    b"GARBAGE\r\n",
)
FIELDS = (
    b"Host: a\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 6\r\n",
    b"content-length: 0\r\n",
    b"Content-Length: +5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Connection: close, upgrade\r\n",
    b"Upgrade: h2c\r\n",
    b"Expect: 100-continue\r\n",
    b"X: y\n",
    b"X: y\r\n z\r\n",
    b"X\x00: y\r\n",
    b" X: y\r\n",
    b"X: \xff\r\n",
)
BODIES = (
    b"",
    b"hello",
    b"hello!",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5\nhello\n0\n\n",
    b"0\r\n\r\nPOST /generate HTTP/1.1\r\nHost: smuggled\r\n\r\n",
    b"ffffffffffffffffff\r\n",
    b"5;x=y\r\nhello\r\n0\r\nT: u\r\n\r\n",
)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    fields = draw(st.lists(st.sampled_from(FIELDS), max_size=4))
    host = [b"Host: a\r\n"] if draw(st.booleans()) else []
    head = draw(st.sampled_from(LINES)) + b"".join([*host, *fields]) + b"\r\n"
    return head + draw(st.sampled_from(BODIES))


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Requests one behind the other, then some bytes changed."""
    raw = bytearray(b"".join(draw(st.lists(requests(), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(raw)))
        raw[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=3))
    return bytes(raw)


@dataclass
class Reading:
    """What came out of a connection's bytes."""

    requests: list[tuple[bytes, bytes, bytes]]
    refused: bool = False
    broken: bool = False  # bytes were dropped: the connection closes after the last answer
    handed_over: bytes | None = None


def read(pieces: list[bytes]) -> Reading:
    reader = RequestReader(HOT, FrontLimits(100), HeadCache())
    reading = Reading([])
    for piece in pieces:
        data = piece
        while True:
            try:
                request = reader.read(data)
            except RequestError:
                reading.refused = True
                return reading
            data = b""
            if request is None:
                break
            if request.replay is not None:
                reading.handed_over = request.replay
                return reading
            reading.requests.append((request.head.method, request.head.path, request.body))
            reading.broken = reader.broken
            if reading.broken or reader.idle:
                break
        if reading.broken:
            return reading
    return reading


def in_pieces(raw: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % len(raw) for cut in cuts} - {0}) if raw else []
    return [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(raw=streams(), cuts=st.lists(st.integers(0, 10_000), max_size=6))
def test_cuts_do_not_change_what_is_read(raw: bytes, cuts: list[int]) -> None:
    whole, cut = read([raw]), read(in_pieces(raw, cuts))
    for path in {path for _, path, _ in whole.requests + cut.requests}:
        assert path in HOT
    if whole.broken or cut.broken:
        # Requests behind a chunked body are lost or not, by how the bytes came; never changed.
        fewer, more = sorted((whole.requests, cut.requests), key=len)
        assert more[: len(fewer)] == fewer
        return
    assert whole.requests == cut.requests
    assert whole.refused == cut.refused
    assert (whole.handed_over is None) == (cut.handed_over is None)
    if whole.handed_over is not None and cut.handed_over is not None:
        assert whole.handed_over.startswith(cut.handed_over)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(raw=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    assert not read([raw]).requests
