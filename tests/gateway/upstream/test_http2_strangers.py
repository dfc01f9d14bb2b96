"""A peer that breaks the rules of HTTP/2 or gRPC ends the stream, with a reason, and no more."""

import asyncio

import pytest
from h2 import events
from h2.errors import ErrorCodes
from hypothesis import given, settings
from hypothesis import strategies as st

from attached_worker import settle
from http2_peer import STREAM, Opened, data, goodbye, opened
from radixgate.gateway.upstream import http2_stream
from radixgate.gateway.upstream.grpc_messages import BrokenStream, framed
from radixgate.gateway.upstream.http2_stream import MAX_MESSAGE_BYTES, WINDOW_BYTES

WHOLE = framed(b"whole")
UNKNOWN_FRAME = b"\0\0\3\xfa\0\0\0\0\1abc"


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", "a frame of .* over 16384", id="HTTP/1"),
        pytest.param(
            b"\0\x40\1\0\0\0\0\0\1", "a frame of 16385 bytes, over 16384", id="a long one"
        ),
        pytest.param(b"\0\0\1\6\0\0\0\0\0x", "not HTTP/2", id="a short ping"),
        pytest.param(
            b"\0\0\7\7\0\0\0\0\0" + bytes(7), "a goodbye that is too", id="a short goodbye"
        ),
        pytest.param(b"\0\0\4\x08\0\0\0\0\0" + bytes(4), "not HTTP/2", id="a window grown by none"),
        pytest.param(data(b"x", stream=3), "not HTTP/2", id="another stream"),
        pytest.param(b"\0\0\1\0\x08\0\0\0\1\1", "more padding than", id="padding alone"),
        pytest.param(b"\0\0\0\0\x08\0\0\0\1", "more padding than", id="no room for padding"),
        pytest.param(b"\0\0\1\1\4\0\0\0\1\xff", "not HTTP/2", id="headers of garbage"),
        pytest.param(b"\0\0\0\1\0\0\0\0\1" + data(b""), "not HTTP/2", id="data within headers"),
        pytest.param(b"\0\0\0\5\4\0\0\0\1", "not HTTP/2", id="a pushed promise"),
        pytest.param(data(b"\1" + WHOLE[1:]), "compressed", id="compressed"),
        pytest.param(
            data(b"\0" + (MAX_MESSAGE_BYTES + 1).to_bytes(4, "big")),
            f"a message of {MAX_MESSAGE_BYTES + 1} bytes, over {MAX_MESSAGE_BYTES}",
            id="too great a message",
        ),
    ],
)
async def test_what_cannot_be_read_ends_it_with_a_goodbye(wire: bytes, why: str) -> None:
    async with opened() as one:
        one.peer.deliver(data(WHOLE) + UNKNOWN_FRAME + data(WHOLE) + wire + data(WHOLE))
        assert one.messages == [b"whole", b"whole"]
        with pytest.raises(AssertionError, match=why):
            raise AssertionError(await one.why())
        (said,) = (
            event for event in one.peer.heard if isinstance(event, events.ConnectionTerminated)
        )
        assert said.error_code != ErrorCodes.NO_ERROR
        assert one.peer.closed


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="HTTP/1"),
        pytest.param(b"\x15\3\3\0\2\2\x46" * 2, id="an alert of TLS"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="SSH"),
    ],
)
async def test_whoever_speaks_something_else_from_the_start_is_told_by_that(wire: bytes) -> None:
    async with opened(settled=False) as one:
        one.peer.deliver(wire)
        assert await one.why() == "what listens there does not speak HTTP/2"
        assert one.peer.closed


@pytest.mark.parametrize("pieces", [WHOLE, WHOLE + WHOLE])
async def test_what_the_receiver_cannot_read_ends_it(pieces: bytes) -> None:
    async with opened() as one:

        def refuse(message: bytes) -> None:
            raise BrokenStream(f"no batch: {message!r}")

        one.stream._messages._on_message = refuse
        one.peer.deliver(data(pieces))
        assert await one.why() == "no batch: b'whole'"


async def test_data_before_the_head_of_an_answer_is_none() -> None:
    async with opened(answered=False) as one:
        one.peer.deliver(data(WHOLE))
        assert await one.why() == "what came is not HTTP/2: cannot receive data before headers"
        assert one.messages == []


async def test_an_answer_that_is_not_grpcs_is_told_as_it_came() -> None:
    async with opened(answered=False) as one:
        one.peer.h2.send_headers(STREAM, ((":status", "502"), ("content-type", "text/html")))
        one.peer.say()
        assert await one.why() == "HTTP status 502 instead of a gRPC answer"


async def test_more_than_the_window_allows_ends_it() -> None:
    async with opened() as one:
        # Nothing is given back while half of it is left, which is used up by one frame too many.
        one.stream._window.left = WINDOW_BYTES // 2
        one.peer.deliver(data(bytes(0)))
        assert one.alive
        one.stream._window.left = 9
        one.peer.deliver(data(framed(b"12345")))
        assert await one.why() == "more was sent than the window allows"
        assert one.messages == []


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        pytest.param(b"\0\0\4\3\0\0\0\0\1\0\0\0\x08", "the stream was reset: CANCEL", id="reset"),
        pytest.param(
            goodbye(0, 0), "the worker is going away: NO_ERROR", id="goodbye before this stream"
        ),
        pytest.param(
            goodbye(STREAM, 2, b"Cancelling all calls"),
            "the worker is going away: INTERNAL_ERROR, Cancelling all calls",
            id="goodbye for an error",
        ),
        pytest.param(data(WHOLE, ends=True), "the stream ended without a status", id="no trailers"),
        pytest.param(
            data(WHOLE[:7]) + data(b"", ends=True), "the stream ended without a status", id="cut"
        ),
    ],
)
async def test_an_end_in_the_middle_is_told_by_its_cause(wire: bytes, why: str) -> None:
    async with opened() as one:
        one.peer.deliver(wire + data(WHOLE))
        assert await one.why() == why


async def test_trailers_within_a_message_or_without_a_status_are_no_good_end() -> None:
    async with opened() as one:
        one.peer.deliver(data(WHOLE[:7]))
        one.peer.end(("grpc-status", "0"))
        assert await one.why() == "the stream ended within a message"
    async with opened() as one:
        one.peer.end(("some", "thing"))
        assert await one.why() == "the stream ended without a status"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (None, "the worker closed the connection"),
        (ConnectionResetError(104, "reset"), "the connection was lost: [Errno 104] reset"),
    ],
)
async def test_a_connection_that_is_gone_ends_it(error: OSError | None, why: str) -> None:
    async with opened() as one:
        one.peer.closed = True
        one.stream.connection_lost(error)
        assert await one.why() == why
        one.stream.send(b"nobody hears it")
        await settle()


async def test_who_asks_and_never_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2_stream, "MAX_REPLIES_BYTES", 1_000)
    async with opened() as one:
        one.peer.buffered = 1_001
        one.peer.h2.ping(bytes(8))
        one.peer.say()
        assert one.alive  # the socket has not said yet that it is full
        one.stream.pause_writing()
        one.peer.h2.ping(bytes(8))
        one.peer.say()
        assert await one.why() == "the worker keeps asking and does not read the answers"
        assert one.peer.aborted


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(st.binary(max_size=30), max_size=6), st.booleans(), st.integers(0, 255))
def test_whatever_comes_nothing_is_raised(pieces: list[bytes], answered: bool, kind: int) -> None:
    async def run() -> None:
        async with opened(answered=answered) as one:
            for piece in pieces:
                if one.alive:  # with a head of a frame, so that h2 gets to see the rest
                    head = len(piece).to_bytes(3, "big") + bytes(
                        [kind % 12, piece[0] if piece else 0]
                    )
                    one.peer.deliver(head + bytes([0, 0, 0, kind % 2]) + piece)
                if one.alive:
                    one.peer.deliver(piece)
            await ends_or_goes_on(one)

    asyncio.run(run())


async def ends_or_goes_on(one: Opened) -> None:
    if one.peer.closed:
        assert await one.why()
    assert one.messages == [] or all(isinstance(message, bytes) for message in one.messages)
