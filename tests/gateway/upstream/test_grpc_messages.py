"""Messages come out of a stream as they went in, wherever it was cut; what is wrong is named."""

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


@pytest.mark.parametrize("flag", [1, 255])
def test_a_compressed_message_is_refused(flag: int) -> None:
    with pytest.raises(BrokenStream, match="compressed"):
        read([bytes([flag]) + framed(b"abc")[1:]])
