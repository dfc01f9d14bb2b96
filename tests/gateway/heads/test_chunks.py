"""Whole chunks against a model in Python, and the parser that knows all of the grammar."""

import re
from collections.abc import Callable

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.gateway.heads.chunks import COMPILED, none_are_taken, whole_chunks

WholeChunks = Callable[[bytes, int], tuple[bytes, bool] | None]


def model(piece: bytes, begin: int) -> tuple[bytes, bool] | None:
    """What `whole_chunks` does, chunk by chunk."""
    if not 0 <= begin <= len(piece):
        raise ValueError("they begin in the piece, or at its end")
    held, size = [], 1
    while begin < len(piece):
        line = re.compile(rb"([0-9a-fA-F]{1,8})\r\n").match(piece, begin)
        if line is None or not size:
            return None
        size = int(line[1], 16)
        begin = line.end() + size + 2
        if piece[begin - 2 : begin] != b"\r\n":
            return None
        held.append(piece[line.end() : begin - 2])
    return b"".join(held), not size


BOTH: list[WholeChunks] = [model, whole_chunks] if COMPILED else [model]
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Parsed:
    """What the parser makes of a body in chunks."""

    def __init__(self, body: bytes) -> None:
        self.data, self.ends = b"", False
        httptools.HttpResponseParser(self).feed_data(HEAD + body)

    def on_body(self, data: bytes) -> None:
        self.data += data

    def on_message_complete(self) -> None:
        self.ends = True


@pytest.mark.parametrize("chunks", BOTH)
@pytest.mark.parametrize(
    ("piece", "held"),
    [
        pytest.param(b"", (b"", False), id="nothing"),
        pytest.param(b"3\r\nabc\r\n", (b"abc", False), id="one"),
        pytest.param(b"3\r\nabc\r\n0a\r\n0123456789\r\n", (b"abc0123456789", False), id="two"),
        pytest.param(b"A\r\n0123456789\r\n0\r\n\r\n", (b"0123456789", True), id="and-the-last"),
        pytest.param(b"0\r\n\r\n", (b"", True), id="the-last-alone"),
        pytest.param(b"5\r\n0\r\n\r\n\r\n", (b"0\r\n\r\n", False), id="data-that-looks-like-it"),
        pytest.param(b"00000001\r\na\r\n", (b"a", False), id="eight-digits"),
        pytest.param(b"000000001\r\na\r\n", None, id="nine-digits"),
        pytest.param(b"ffffffffffffffff1\r\na\r\n", None, id="many-digits"),
        pytest.param(b"ffffffff\r\na\r\n", None, id="much-more-than-there-is"),
        pytest.param(b"3;x=1\r\nabc\r\n", None, id="extension"),
        pytest.param(b"3 \r\nabc\r\n", None, id="blank-behind-the-size"),
        pytest.param(b"0x3\r\nabc\r\n", None, id="a-prefix"),
        pytest.param(b"\r\nabc\r\n", None, id="no-size"),
        pytest.param(b"3\nabc\n", None, id="bare-lf"),
        pytest.param(b"3\r\nabcd\r\n", None, id="longer-than-it-says"),
        pytest.param(b"0\r\nx: y\r\n\r\n", None, id="trailer"),
        pytest.param(b"0\r\n\r\n3\r\nabc\r\n", None, id="more-behind-the-last"),
        pytest.param(b"0\r\n\r\nHTTP/1.1 200 OK\r\n", None, id="another-answer"),
    ],
)
def test_whole_chunks_are_taken_and_all_else_is_left(
    chunks: WholeChunks, piece: bytes, held: tuple[bytes, bool] | None
) -> None:
    assert chunks(piece, 0) == held
    assert chunks(b"head" + piece, 4) == held


@pytest.mark.parametrize("chunks", BOTH)
def test_a_piece_cut_anywhere_but_between_chunks_is_left(chunks: WholeChunks) -> None:
    piece = b"3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"
    between = {0: (b"", False), 8: (b"abc", False), 30: (b"abc0123456789abcdef", False)}
    for cut in range(len(piece)):
        assert chunks(piece[:cut], 0) == between.get(cut), cut


@pytest.mark.parametrize("chunks", BOTH)
@given(
    body=st.lists(
        st.sampled_from(
            b"0 3 A f ;x abc 0123456789 \r\n \r \n 00000003 t:u\r\n 0\r\n\r\n 3\r\nabc\r\n".split(
                b" "
            )
        ),
        max_size=8,
    ).map(b"".join)
)
def test_what_is_taken_is_what_the_parser_makes_of_it(chunks: WholeChunks, body: bytes) -> None:
    held = chunks(body, 0)
    assert held == model(body, 0)
    if held is not None:
        parsed = Parsed(body)
        assert (parsed.data, parsed.ends) == held


@pytest.mark.parametrize("chunks", BOTH)
@pytest.mark.parametrize("begin", [-1, 4])
def test_they_begin_in_the_piece(chunks: WholeChunks, begin: int) -> None:
    with pytest.raises(ValueError, match=r"^they begin in the piece, or at its end$"):
        chunks(b"abc", begin)


@pytest.mark.skipif(not COMPILED, reason="it was installed without a compiler")
@pytest.mark.parametrize("args", [(b"",), ("0\r\n\r\n", 0), (b"", "0")])
def test_what_is_no_piece_is_refused(args: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        whole_chunks(*args)  # type: ignore[arg-type]


def test_without_a_compiler_all_is_left_to_the_parser() -> None:
    assert none_are_taken(b"3\r\nabc\r\n", 0) is None
