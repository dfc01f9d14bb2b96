"""Answers in chunks under a head that came before: heard as if all of them were parsed."""

import pytest

from known_connection import CHUNKS, END, HEAD, HEARD, Known


@pytest.fixture
async def known() -> Known:
    return Known()


async def test_an_answer_cut_anywhere_is_heard_whole_and_the_next_one_too(known: Known) -> None:
    whole = HEAD + CHUNKS + END
    for cut in range(len(whole)):
        assert known.ask(*filter(None, (whole[:cut], whole[cut:]))).heard == HEARD, cut
        assert known.idle


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([HEAD, CHUNKS, END], id="head-chunks-and-end"),
        pytest.param([HEAD + CHUNKS[:8], CHUNKS[8:20], CHUNKS[20:] + END], id="cut-in-a-later-one"),
        pytest.param([HEAD + CHUNKS, b"0\r\nx: y\r\n\r\n"], id="a-trailer"),
        pytest.param([HEAD, CHUNKS.replace(b"3\r", b"3;x=1\r"), END], id="an-extension"),
        pytest.param([HEAD[:9], HEAD[9:] + CHUNKS, END], id="a-head-in-two"),
        pytest.param([bytes([byte]) for byte in HEAD + CHUNKS + END], id="byte-by-byte"),
    ],
)
async def test_what_the_parser_must_read_is_heard_alike(known: Known, pieces: list[bytes]) -> None:
    for _ in range(2):
        assert known.ask(*pieces).heard == HEARD
        assert known.idle


@pytest.mark.parametrize(
    "wrong",
    [b"x\r\n", b"3\r\nabcd\r\n", b"-1\r\n", b"fffffffff\r\n"[:3] + b"g\r\n"],
    ids=["no-size", "longer-than-it-says", "negative", "no-digit"],
)
async def test_what_are_no_chunks_breaks_the_answer_as_ever(known: Known, wrong: bytes) -> None:
    heard = known.ask(HEAD + CHUNKS, wrong).told
    assert heard[0] == HEARD[0]
    assert str(heard[-1]).startswith("worker http://127.0.0.1:1: the answer is not HTTP")
    assert not known.idle


async def test_more_than_was_asked_for_ends_the_connection_and_not_the_answer(known: Known) -> None:
    assert known.ask(HEAD + CHUNKS, END + HEAD + CHUNKS).heard == HEARD
    assert not known.idle


async def test_an_answer_that_stops_is_no_whole_one(known: Known) -> None:
    listener = known.ask(HEAD + CHUNKS)
    known.connection.connection_lost(None)
    assert listener.told[-1] == (
        "worker http://127.0.0.1:1: the connection was closed by the worker"
        " in the middle of an answer, True"
    )


@pytest.mark.parametrize("leaves_at", [1, 2])
async def test_who_leaves_hears_nothing_more(known: Known, leaves_at: int) -> None:
    listener = known.ask(HEAD + CHUNKS, END, leaves_at=leaves_at)
    assert listener.told == HEARD[:leaves_at]
    assert not known.idle
