"""Cutting a connection's bytes into requests."""

import math

import pytest

from radixgate.errors import PayloadTooLarge, RequestError
from radixgate.gateway.heads.request_head import BadHead, HeadCache
from radixgate.gateway.heads.request_reader import (
    MAX_PIPELINED_BYTES,
    FrontLimits,
    ReadRequest,
    RequestReader,
)

HOT = frozenset((b"/generate",))


def post(body: bytes, path: bytes = b"/generate", *fields: bytes) -> bytes:
    lines = b"".join(field + b"\r\n" for field in fields)
    length = b"content-length: %d\r\n" % len(body)
    return b"POST %b HTTP/1.1\r\nhost: a\r\n%b%b\r\n%b" % (path, lines, length, body)


def chunked(body: bytes) -> bytes:
    head = b"POST /generate HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def reader(max_body_bytes: int = 1000) -> RequestReader:
    return RequestReader(HOT, FrontLimits(max_body_bytes), HeadCache())


def body_of(request: ReadRequest | None) -> bytes:
    assert request is not None
    assert request.replay is None
    return request.body


@pytest.mark.parametrize(
    "raw",
    [pytest.param(post(b"hello"), id="counted"), pytest.param(chunked(b"hello"), id="chunked")],
)
def test_a_request_cut_anywhere_is_read(raw: bytes) -> None:
    for cut in range(1, len(raw)):
        front = reader()
        assert front.read(raw[:cut]) is None
        assert not front.idle
        assert body_of(front.read(raw[cut:])) == b"hello"
        assert front.idle


def test_pipelined_requests_come_in_order() -> None:
    front = reader()
    assert body_of(front.read(post(b"one") + post(b"two") + post(b"three")[:20])) == b"one"
    front.keep(post(b"three")[20:])
    assert body_of(front.read(b"")) == b"two"
    assert body_of(front.read(b"")) == b"three"
    assert front.idle


def test_too_much_behind_a_running_answer_breaks_the_connection() -> None:
    front = reader()
    front.read(post(b"one"))
    front.keep(b"x" * MAX_PIPELINED_BYTES)
    assert not front.broken
    front.keep(b"x")
    front.keep(b"x")
    assert (front.broken, front.idle) == (True, True)


def test_bytes_behind_a_chunked_body_break_the_connection() -> None:
    front = reader()
    assert body_of(front.read(chunked(b"one") + post(b"two"))) == b"one"
    assert front.broken


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"GET /generate HTTP/1.1\r\nhost: a\r\n\r\n", id="another-method"),
        pytest.param(post(b"{}", b"/workers"), id="another-path"),
        pytest.param(post(b"{}", b"/generate/"), id="almost-the-path"),
    ],
)
def test_what_is_not_ours_is_replayed_whole(raw: bytes) -> None:
    front = reader()
    assert front.read(raw[:7]) is None
    request = front.read(raw[7:])
    assert request is not None
    assert request.replay == raw


def test_a_length_over_the_limit_is_refused_before_the_body_comes() -> None:
    with pytest.raises(PayloadTooLarge) as refused:
        reader(max_body_bytes=4).read(post(b"hello").removesuffix(b"hello"))
    assert refused.value.status == 413


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"GET / HTTP/1.1\nhost: a\n\n", id="bare-lf-only"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: a\n\n", id="bare-lf-later"),
        pytest.param(b"\x16\x03\x01\x02\x00", id="tls"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 11_000, id="endless-head"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 11_000 + b"\r\n", id="head-over-64-kb"),
        pytest.param(b"GET /" + b"a" * 70_000, id="endless-target"),
    ],
)
def test_what_cannot_become_a_request_is_refused_at_once(raw: bytes) -> None:
    with pytest.raises(BadHead):
        reader().read(raw)


def test_continue_is_due_once_and_only_while_the_client_waits() -> None:
    expect = b"Expect: 100-continue"
    raw = post(b"hello", b"/generate", expect)
    front = reader()
    assert front.read(raw.removesuffix(b"hello")) is None
    assert front.awaits_continue
    assert front.read(b"he") is None
    assert not front.awaits_continue
    assert body_of(front.read(b"llo")) == b"hello"
    assert not front.awaits_continue
    sent_at_once = reader()
    assert sent_at_once.read(raw[:-1]) is None
    assert not sent_at_once.awaits_continue


def test_empty_lines_before_a_request_are_passed_over() -> None:
    front = reader()
    assert front.read(b"\r\n") is None
    assert front.idle
    assert body_of(front.read(b"\r\n" + post(b"hello"))) == b"hello"


def test_nothing_but_refusals_is_raised() -> None:
    front = reader()
    with pytest.raises(RequestError):
        front.read(b"\x00" * 10)


def test_a_body_may_be_slow_but_not_drip() -> None:
    limits = FrontLimits(1_000_000)
    first = limits.piece_by(100.0, math.inf, 1)
    assert first == 130.0
    assert limits.piece_by(129.0, first, 1) == pytest.approx(130.0, abs=0.01)
    steady = first
    for second in range(1, 600):
        steady = limits.piece_by(100.0 + second, steady, 500)
        assert steady == pytest.approx(130.0 + second)
    assert limits.piece_by(130.0, first, 64_000) == 160.0, "no time is saved up"
