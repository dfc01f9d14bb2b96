"""Answers in chunks under a head that came before: heard as if all of them were parsed."""

import asyncio
import os
import socket
from collections.abc import Iterator
from typing import cast

import pytest

from clocks import FakeClock
from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.heads.chunks import COMPILED
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import AT_ONCE_BYTES, LoopTurn
from radixgate.gateway.upstream.connection import UpstreamConnection
from radixgate.gateway.upstream.late_bytes import WORTH_A_READ_BYTES, LateBytes
from radixgate.gateway.upstream.pool import UpstreamPool

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNKS = b"3\r\nfir\r\n0a\r\n-and-more-\r\n4\r\nlast\r\n"
END = b"0\r\n\r\n"
BODY = b"fir-and-more-last"
HEARD = [(200, [(b"transfer-encoding", b"chunked")]), BODY, "complete"]


class Wire:
    """A transport over a socket that the loop does not read, or over none."""

    def __init__(self, sock: socket.socket | None = None, *, tls: bool = False) -> None:
        self.info = {"socket": sock, "sslcontext": True if tls else None}
        self.open = self.reads = True

    def get_extra_info(self, name: str) -> object:
        return self.info[name]

    def write(self, data: bytes) -> None: ...

    def is_closing(self) -> bool:
        return not self.open

    def is_reading(self) -> bool:
        return self.open and self.reads

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def abort(self) -> None:
        self.open = False


class Hears:
    """A listener that keeps what it is told, and may leave when it has been told so much."""

    def __init__(self, connection: UpstreamConnection, leaves_at: int = 100) -> None:
        self.connection, self.leaves_at = connection, leaves_at
        self.told: list[object] = []
        self.pieces = 0

    @property
    def heard(self) -> list[object]:
        """With the pieces of the body as one."""
        body = b"".join(one for one in self.told if isinstance(one, bytes))
        others = [one for one in self.told if not isinstance(one, bytes)]
        return [others[0], body, *others[1:]]

    def _take(self, *told: object) -> None:
        self.told += told
        if len(self.told) >= self.leaves_at:
            self.connection.abort()

    def on_response(self, status: int, headers: Headers) -> None:
        self._take((status, headers))

    def on_data(self, data: bytes) -> None:
        assert data
        self._take(data)

    def on_complete(self) -> None:
        self._take("complete")

    def on_answer(self, status: int, headers: Headers, body: bytes) -> None:
        self._take((status, headers), body, "complete")

    def on_broken(self, error: RadixgateError, answered: bool) -> None:
        self._take(f"{error}, {answered}")


class Known:
    """A connection on which one answer under HEAD has come."""

    def __init__(self, sock: socket.socket | None = None) -> None:
        clock = FakeClock()
        self.pool = UpstreamPool(
            "127.0.0.1",
            1,
            clock=clock,
            deadlines=Deadlines(clock),
            turn=LoopTurn(),
            max_idle=2,
            idle_timeout_s=10.0,
        )
        self.wire = Wire(sock)
        self.connection = UpstreamConnection(self.pool)
        self.connection.connection_made(cast(asyncio.Transport, self.wire))
        self.ask(HEAD, b"1\r\na\r\n" + END)

    def ask(self, *pieces: bytes, leaves_at: int = 100) -> Hears:
        """A request, and what comes for it, each piece in a turn of its own."""
        listener = Hears(self.connection, leaves_at)
        self.connection.send(b"GET / HTTP/1.1\r\n\r\n", b"", listener)
        for piece in pieces:
            self.connection.data_received(piece)
            self.pool.turn.end()
        return listener

    @property
    def idle(self) -> bool:
        """It can carry another exchange."""
        return self.pool.take_idle() is self.connection


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


# ---------------------------------------------------------------- what came late

LONG = b"%x\r\n%b\r\n" % (WORTH_A_READ_BYTES, b"a" * WORTH_A_READ_BYTES)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


Pair = tuple[socket.socket, socket.socket]


async def test_what_has_come_by_the_end_of_the_turn_is_one_piece_with_it(pair: Pair) -> None:
    known = Known(pair[0])
    pair[1].sendall(CHUNKS + END)
    listener = known.ask(HEAD + LONG)
    assert listener.told[1:] == [b"a" * WORTH_A_READ_BYTES + BODY, "complete"]
    assert known.idle


@pytest.mark.skipif(not COMPILED, reason="without a compiler later pieces are parsed")
async def test_of_a_later_piece_too_and_where_it_ends_in_a_chunk(pair: Pair) -> None:
    known = Known(pair[0])
    listener = known.ask(HEAD + LONG)
    pair[1].sendall(CHUNKS[:10])
    known.connection.data_received(LONG)
    known.pool.turn.end()
    known.connection.data_received(CHUNKS[10:] + END)
    known.pool.turn.end()
    assert b"".join(cast(list[bytes], listener.told[1:-1])) == b"a" * 2 * WORTH_A_READ_BYTES + BODY
    assert known.idle


@pytest.mark.parametrize("begun", [False, True], ids=["with-its-head", "later"])
async def test_pieces_of_one_turn_stay_in_order_before_what_came_late(
    pair: Pair, begun: bool
) -> None:
    # The loop polls again in a turn in which 1,024 connections had brought something.
    known = Known(pair[0])
    listener = known.ask(*([HEAD] if begun else []))
    known.connection.data_received(LONG if begun else HEAD + LONG)
    known.connection.data_received(LONG.replace(b"a", b"b"))
    pair[1].sendall(CHUNKS + END)
    known.pool.turn.end()
    body = b"a" * WORTH_A_READ_BYTES + b"b" * WORTH_A_READ_BYTES + BODY
    assert listener.heard == [HEARD[0], body, "complete"]
    assert known.idle


@pytest.mark.parametrize(
    ("data", "turn_at_once", "tls"),
    [
        pytest.param(LONG[:100], 0, False, id="a-short-piece"),
        pytest.param(b"a" * AT_ONCE_BYTES, 0, False, id="a-large-one"),
        pytest.param(LONG + END, 0, False, id="the-end-is-there"),
        pytest.param(LONG, 1, False, id="in-a-turn-that-does-not-wait"),
        pytest.param(LONG, 0, True, id="tls"),
    ],
)
def test_nothing_is_read_where_it_pays_not(
    pair: Pair, data: bytes, turn_at_once: int, tls: bool
) -> None:
    pair[1].sendall(b"more")
    turn = LoopTurn()
    turn.at_once = turn_at_once
    late = LateBytes(cast(asyncio.Transport, Wire(pair[0], tls=tls)), turn)
    assert late.behind(data) == data
    assert pair[0].recv(10) == b"more"


def test_who_wants_no_more_is_not_read_nor_is_a_number_that_may_be_anothers(pair: Pair) -> None:
    wire = Wire(pair[0])
    late = LateBytes(cast(asyncio.Transport, wire), LoopTurn())
    pair[1].sendall(b"more")
    wire.pause_reading()
    assert late.behind(LONG) == LONG
    wire.resume_reading()
    assert late.behind(LONG) == LONG + b"more"
    wire.abort()
    os.write(pair[1].fileno(), b"anothers")
    assert late.behind(LONG) == LONG


def test_the_end_of_a_connection_is_left_to_the_loop_and_an_error_ends_it(pair: Pair) -> None:
    wire = Wire(pair[0])
    late = LateBytes(cast(asyncio.Transport, wire), LoopTurn())
    pair[1].close()
    assert late.behind(LONG) == LONG
    assert wire.open
    with socket.socket() as never_connected:
        wire = Wire(never_connected)
        late = LateBytes(cast(asyncio.Transport, wire), LoopTurn())
        assert late.behind(LONG) == LONG
        assert not wire.open
