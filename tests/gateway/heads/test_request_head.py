"""What the hand-written front refuses, rule by rule."""

import pytest

from radixgate.errors import PayloadTooLarge
from radixgate.gateway.heads.request_head import (
    MAX_KEPT_HEAD_BYTES,
    MAX_KEPT_HEADS,
    BadHead,
    ChunkedBody,
    HeadCache,
    RequestHead,
    read_head,
)

LINE = b"POST /v1/chat/completions HTTP/1.1\r\n"
HOST = b"Host: a\r\n"


def head(*fields: bytes, line: bytes = LINE) -> RequestHead:
    return read_head(line + HOST + b"".join(field + b"\r\n" for field in fields) + b"\r\n")


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param((b"Content-Length: 5", b"Transfer-Encoding: chunked"), id="both-framings"),
        pytest.param((b"Transfer-Encoding: chunked", b"Content-Length: 5"), id="both-reversed"),
        pytest.param((b"Content-Length: 5", b"Content-Length: 5"), id="length-twice"),
        pytest.param((b"Content-Length: 5", b"Content-Length: 6"), id="lengths-differ"),
        pytest.param((b"Content-Length: 5, 5",), id="length-list"),
        pytest.param((b"Content-Length: +5",), id="length-plus"),
        pytest.param((b"Content-Length: -5",), id="length-minus"),
        pytest.param((b"Content-Length: 0x5",), id="length-hex"),
        pytest.param((b"Content-Length: 5_0",), id="length-underscore"),
        pytest.param((b"Content-Length:",), id="length-empty"),
        pytest.param((b"Content-Length: 99999999999999999999999",), id="length-overflow"),
        pytest.param((b"Transfer-Encoding: gzip, chunked",), id="two-encodings"),
        pytest.param((b"Transfer-Encoding: chunked, gzip",), id="chunked-not-last"),
        pytest.param((b"Transfer-Encoding: identity",), id="identity"),
        pytest.param((b"Transfer-Encoding: xchunked",), id="almost-chunked"),
        pytest.param((b"Transfer-Encoding: chunked",) * 2, id="chunked-twice"),
        pytest.param((b"A: b\n",), id="bare-lf-at-line-end"),
        pytest.param((b"A: b\nC: d",), id="bare-lf"),
        pytest.param((b"A: b\rC: d",), id="bare-cr"),
        pytest.param((b"A: b\r\n c",), id="obsolete-folding"),
        pytest.param((b"A: b\r\n\tc",), id="obsolete-folding-tab"),
        pytest.param((b" A: b",), id="folded-first-header"),
        pytest.param((b"A\x01: b",), id="control-byte-in-name"),
        pytest.param((b"A\x00: b",), id="nul-in-name"),
        pytest.param((b"A\xe9: b",), id="high-byte-in-name"),
        pytest.param((b"A : b",), id="space-before-colon"),
        pytest.param((b": b",), id="no-name"),
        pytest.param((b"A b",), id="no-colon"),
        pytest.param((b"A: b\x00",), id="nul-in-value"),
        pytest.param((b"A: b\x01",), id="control-byte-in-value"),
        pytest.param((b"Host: b",), id="host-twice"),
        pytest.param((b"Expect: 200-maybe",), id="unknown-expectation"),
    ],
)
def test_a_head_that_two_servers_may_read_differently_is_refused(fields: tuple[bytes, ...]) -> None:
    with pytest.raises(BadHead):
        head(*fields)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"POST /\r\n", id="http-0.9"),
        pytest.param(b"POST / HTTP/2.0\r\n", id="http-2"),
        pytest.param(b"POST / HTTP/1.2\r\n", id="http-1.2"),
        pytest.param(b"POST / RTSP/1.0\r\n", id="rtsp"),
        pytest.param(b"POST  / HTTP/1.1\r\n", id="two-spaces"),
        pytest.param(b"POST / HTTP/1.1 \r\n", id="space-at-the-end"),
        pytest.param(b"post / HTTP/1.1\r\n", id="lower-case-method"),
        pytest.param(b"POST /\x01 HTTP/1.1\r\n", id="control-byte-in-target"),
        pytest.param(b"POST /\xe9 HTTP/1.1\r\n", id="high-byte-in-target"),
        pytest.param(b"POST chat HTTP/1.1\r\n", id="relative-target"),
        pytest.param(b"CONNECT a:80 HTTP/1.1\r\n", id="connect"),
        pytest.param(b"POST /" + b"a" * 8_192 + b" HTTP/1.1\r\n", id="target-over-8-kb"),
    ],
)
def test_a_request_line_out_of_the_grammar_is_refused(line: bytes) -> None:
    with pytest.raises(BadHead):
        head(line=line)


def test_http_1_1_needs_a_host_and_1_0_does_not() -> None:
    with pytest.raises(BadHead, match="Host"):
        read_head(LINE + b"\r\n")
    assert not read_head(b"POST / HTTP/1.0\r\n\r\n").http11
    with pytest.raises(BadHead, match=r"1\.0"):
        read_head(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")


def test_what_a_head_says() -> None:
    read = head(
        b"X-Up: A",
        b"content-length: 12",
        b"EXPECT: 100-Continue",
        line=LINE.replace(b" H", b"?a=b H"),
    )
    assert (read.method, read.path) == (b"POST", b"/v1/chat/completions")
    assert read.line == b"POST /v1/chat/completions?a=b HTTP/1.1\r\n"
    assert (read.content_length, read.chunked, read.expects_continue) == (12, False, True)
    assert read.forwarded == b"x-up: A\r\n"
    assert head(b"Transfer-Encoding: Chunked").chunked


def test_zeros_before_a_length_mean_nothing_however_many() -> None:
    assert head(b"Content-Length: " + b"0" * 5_000 + b"5").content_length == 5
    assert head(b"Content-Length: " + b"0" * 5_000).content_length == 0


def test_an_offer_to_upgrade_is_passed_over() -> None:
    read = head(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"Content-Length: 3")
    assert (read.content_length, read.keep_alive) == (3, True)


@pytest.mark.parametrize(
    ("line", "field", "keeps"),
    [
        pytest.param(LINE, b"A: b", True, id="1.1"),
        pytest.param(LINE, b"Connection: close", False, id="1.1-close"),
        pytest.param(LINE, b"Connection: foo, Close", False, id="1.1-close-in-a-list"),
        pytest.param(LINE, b"Connection: close\r\nConnection: a", False, id="1.1-two-fields"),
        pytest.param(b"POST / HTTP/1.0\r\n", b"A: b", False, id="1.0"),
        pytest.param(b"POST / HTTP/1.0\r\n", b"Connection: Keep-Alive", True, id="1.0-keep-alive"),
    ],
)
def test_whether_the_connection_stays(line: bytes, field: bytes, keeps: bool) -> None:
    assert head(field, line=line).keep_alive is keeps


def test_an_absolute_target_names_a_path() -> None:
    assert head(line=b"POST http://h:1/generate?x#y HTTP/1.1\r\n").path == b"/generate"
    assert head(line=b"GET http://h HTTP/1.1\r\n").path == b"/"


CHUNKED = b"5;ext=1\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n"


@pytest.mark.parametrize("cut", range(1, len(CHUNKED)))
def test_a_chunked_body_cut_anywhere_is_read(cut: int) -> None:
    body = ChunkedBody(100)
    body.feed(CHUNKED[:cut])
    assert not body.complete
    body.feed(CHUNKED[cut:])
    assert (body.complete, body.surplus, body.content()) == (True, False, b"hello!")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"5\nhello\r\n0\r\n\r\n", id="bare-lf"),
        pytest.param(b"x\r\n", id="no-size"),
        pytest.param(b"-1\r\n", id="negative"),
        pytest.param(b"0x5\r\nhello\r\n", id="hex-prefix"),
        pytest.param(b"5 \r\nhello\r\n", id="space-after-size"),
        pytest.param(b"3\r\nhello\r\n", id="longer-than-its-size"),
        pytest.param(b"fffffffffffffffff\r\n", id="size-overflow"),
        pytest.param(b"0\r\nA: b\rc\r\n\r\n", id="bare-cr-in-a-trailer"),
    ],
)
def test_a_malformed_chunked_body_is_refused(bad: bytes) -> None:
    with pytest.raises(BadHead):
        ChunkedBody(100).feed(bad)


def test_a_chunked_body_is_bounded_in_content_and_in_framing() -> None:
    with pytest.raises(PayloadTooLarge):
        ChunkedBody(4).feed(CHUNKED)
    body = ChunkedBody(1_000_000)
    with pytest.raises(BadHead, match="framing"):
        body.feed(b"1;" + b"x" * 100_000)


def test_bytes_behind_a_chunked_body_are_noticed() -> None:
    for behind in (b"POST / HTTP/1.1\r\n", b"\x00"):
        body = ChunkedBody(100)
        body.feed(CHUNKED + behind)
        assert (body.complete, body.surplus, body.content()) == (True, True, b"hello!")


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(
            b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", id="upgrade"
        ),
        pytest.param(b"CONNECT a:1 HTTP/1.1\r\n\r\n", id="connect"),
        pytest.param(b"\x00\x01", id="nonsense"),
    ],
)
def test_what_stands_behind_a_chunked_body_cannot_spoil_it(behind: bytes) -> None:
    body = ChunkedBody(100)
    body.feed(b"2\r\nhi\r\n0\r\n\r\n" + behind)
    assert (body.complete, body.content(), body.surplus) == (True, b"hi", True)


def test_a_head_that_comes_again_is_not_read_again_and_few_are_kept() -> None:
    cache = HeadCache()
    block = LINE + HOST + b"\r\n"
    assert cache.read(block) is cache.read(block)
    named = LINE + HOST + b"X-Request-Id: a\r\n\r\n"
    assert cache.read(named) is not cache.read(named)
    assert cache.read(named).request_id == "a"
    large = LINE + HOST + b"A: " + b"b" * MAX_KEPT_HEAD_BYTES + b"\r\n\r\n"
    assert cache.read(large) is not cache.read(large)
    for number in range(MAX_KEPT_HEADS):
        cache.read(LINE + HOST + b"A: %d\r\n\r\n" % number)
    assert len(cache._known) <= MAX_KEPT_HEADS
    with pytest.raises(BadHead):
        cache.read(LINE + b"\r\n")
