"""Windows that grow, and those that must not: h2 judges what is not as it should be."""

import pytest

from attached_worker import settle
from http2_peer import STREAM, frame, opened


def update(stream: int, more: int) -> bytes:
    return frame(8, 0, stream, more.to_bytes(4, "big"))


async def test_a_reserved_bit_beside_the_increment_means_nothing() -> None:
    async with opened() as one:
        one.stream.send(b"x" * 65_540)  # five bytes before each message, and a window of 65,535
        await settle()
        assert one.stream.unsent_bytes == 10
        one.peer.deliver(update(0, 0x8000_000A) + update(STREAM, 10))
        assert one.stream.unsent_bytes == 0


async def test_the_window_of_a_stream_that_was_never_ours_is_no_room() -> None:
    async with opened() as one:
        one.peer.deliver(update(3, 10))
        assert (await one.why()).startswith("what came is not HTTP/2")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(update(0, 0), "non-compliant data", id="nothing, for the connection"),
        pytest.param(update(STREAM, 0), "non-compliant data", id="nothing, for the stream"),
        pytest.param(update(0, 2**31 - 1), "flow control", id="more than a window can be"),
        pytest.param(frame(8, 0, 0, b"\0\0\1"), "", id="too short"),
    ],
)
async def test_a_window_that_cannot_grow_so_ends_the_connection(raw: bytes, why: str) -> None:
    async with opened() as one:
        one.peer.deliver(raw)
        said = await one.why()
        assert said.startswith("what came is not HTTP/2")
        assert why in said.lower()
        assert one.peer.closed


async def test_a_stream_whose_window_overflows_is_reset() -> None:
    async with opened() as one:
        one.peer.deliver(update(STREAM, 2**31 - 1))
        assert not one.alive
