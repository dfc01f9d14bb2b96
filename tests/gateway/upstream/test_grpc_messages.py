"""Messages come out of a stream as they went in, wherever it was cut; what is wrong is named."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.gateway.upstream.grpc_messages import BrokenStream, MessageReader, framed

MESSAGES = st.lists(st.binary(max_size=40), max_size=8)
CUTS = st.lists(st.integers(1, 60), max_size=40)


def read(pieces: list[bytes], max_bytes: int = 100) -> tuple[list[bytes], bool]:
    messages: list[bytes] = []
    reader = MessageReader(messages.append, max_bytes)
    for piece in pieces:
        reader.feed(b"xx" + piece + b"yyy", 2, 2 + len(piece))
    return messages, reader.between


def cut(raw: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in [*sizes, len(raw)]:
        pieces.append(raw[:size])
        raw = raw[size:]
    return pieces


@given(MESSAGES, CUTS)
def test_messages_are_the_same_however_they_are_cut(messages: list[bytes], cuts: list[int]) -> None:
    raw = b"".join(map(framed, messages))
    assert read(cut(raw, cuts)) == (messages, True)


@given(MESSAGES, CUTS, st.integers(1, 44))
def test_a_message_that_is_not_whole_is_kept_back(
    messages: list[bytes], cuts: list[int], missing: int
) -> None:
    last = framed(bytes(40))
    raw = b"".join(map(framed, messages)) + last[: len(last) - missing]
    assert read(cut(raw, cuts)) == (messages, missing == len(last))


def test_one_of_the_greatest_length_is_read_and_one_byte_more_is_not_waited_for() -> None:
    assert read([framed(bytes(100))])[0] == [bytes(100)]
    with pytest.raises(BrokenStream, match="a message of 101 bytes, over 100"):
        read([framed(bytes(101))[:5]])


def alone(message: bytes, *, stream: int = 1, kind: int = 0, flags: int = 0) -> bytes:
    size = len(message)
    return struct.pack(">HBBBI", size >> 8, size & 255, kind, flags, stream) + message


@pytest.mark.parametrize("size", [0, 1, 300, 16_379])
def test_a_message_that_is_alone_in_its_frame_is_read_as_it_stands(size: int) -> None:
    messages: list[bytes] = []
    reader = MessageReader(messages.append, 1 << 20)
    piece = alone(framed(bytes(size)))
    assert reader.is_alone(piece, 1)
    reader.take_alone(piece)
    assert messages == [bytes(size)]


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(alone(framed(b"abc"))[:-1], id="cut"),
        pytest.param(alone(framed(b"abc"))[:13], id="cut-in-the-head"),
        pytest.param(alone(framed(b"abc")) + b"\0", id="more-behind-it"),
        pytest.param(alone(framed(b"abc") + framed(b"d")), id="two-messages"),
        pytest.param(alone(framed(b"abc")[:-1]), id="a-part-of-one"),
        pytest.param(alone(framed(b"abc")[:-1]) + b"c", id="the-frame-ends-before-it"),
        pytest.param(alone(framed(b"abc"), stream=3), id="another-stream"),
        pytest.param(alone(framed(b"abc"), kind=1), id="another-kind"),
        pytest.param(alone(framed(b"abc"), flags=1), id="the-last"),
        pytest.param(alone(framed(b"abc"), flags=8), id="padded"),
        pytest.param(alone(b"\1" + framed(b"abc")[1:]), id="compressed"),
        pytest.param(alone(framed(bytes(16_380))), id="a-frame-too-long"),
        pytest.param(alone(framed(bytes(70_000))[:60_000]), id="a-part-of-a-long-one"),
    ],
)
def test_whatever_is_more_or_less_than_one_is_read_the_other_way(piece: bytes) -> None:
    assert not MessageReader(lambda message: None, 1 << 20).is_alone(piece, 1)


def test_none_is_alone_behind_a_part_of_one_or_above_the_greatest_length() -> None:
    reader = MessageReader(lambda message: None, 3)
    assert reader.is_alone(alone(framed(b"abc")), 1)
    assert not reader.is_alone(alone(framed(b"abcd")), 1)
    reader.feed(framed(b"abc")[:-1], 0, 7)
    assert not reader.is_alone(alone(framed(b"abc")), 1)


@pytest.mark.parametrize("flag", [1, 255])
def test_a_compressed_message_is_refused(flag: int) -> None:
    with pytest.raises(BrokenStream, match="compressed"):
        read([bytes([flag]) + framed(b"abc")[1:]])
