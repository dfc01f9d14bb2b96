"""Events are found wherever the stream is cut, and nothing else is taken for one."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.proto.sse import SseScanner

STREAM = (
    b'data: {"content":"caf\xc3\xa9 \xf0\x9f\x98\x80"}\r\n\r\n'
    b": ping\n\n"
    b"event: x\rdata:one\rdata: two\r\r"
    b'data:{"usage":1}\n\ndata: [DONE]\n\n'
)
EVENTS = [
    b'{"content":"caf\xc3\xa9 \xf0\x9f\x98\x80"}',
    b"one\ntwo",
    b'{"usage":1}',
    b"[DONE]",
]


def scan(pieces: list[bytes]) -> list[bytes]:
    scanner = SseScanner()
    return [event for piece in pieces for event in scanner.feed(piece)]


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_g03_a_cut_anywhere_changes_no_event(cut: int) -> None:
    assert scan([STREAM[:cut], STREAM[cut:]]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_many_cuts_change_no_event(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in itertools.pairwise(bounds)]
    assert scan(pieces) == EVENTS


_FRAGMENTS = (b"data: a", b"data:b", b"data: ", b"event: x", b":", b"\n", b"\n\n", b"\r", b"\r\n")


@given(st.lists(st.sampled_from(_FRAGMENTS), max_size=16), st.lists(st.integers(1, 9), max_size=9))
def test_events_are_the_same_in_one_piece_in_some_and_by_the_byte(
    fragments: list[bytes], sizes: list[int]
) -> None:
    stream = b"".join(fragments)
    whole = scan([stream])
    assert whole == scan([stream[i : i + 1] for i in range(len(stream))])
    bounds = [0, *itertools.accumulate(sizes), len(stream)]
    assert whole == scan([stream[a:b] for a, b in itertools.pairwise(sorted(bounds))])


def test_g03_a_line_of_a_megabyte_is_one_event() -> None:
    line = b"x" * 1_048_576
    body = b"data: " + line + b"\n\n"
    assert scan([body[i : i + 65_536] for i in range(0, len(body), 65_536)]) == [line]


@pytest.mark.parametrize(
    ("seen", "between"),
    [
        pytest.param(b"", True, id="nothing"),
        pytest.param(b"data: a\n\n", True, id="whole-event"),
        pytest.param(b"data: a\n", False, id="blank-line-missing"),
        pytest.param(b"data: a\n\nda", False, id="next-has-begun"),
    ],
)
def test_it_knows_whether_a_cut_would_lose_something(seen: bytes, between: bool) -> None:
    scanner = SseScanner()
    list(scanner.feed(seen))
    assert scanner.between_events is between
