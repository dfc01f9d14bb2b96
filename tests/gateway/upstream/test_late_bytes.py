"""What has come behind a piece by the end of its turn is read with it, and in its order."""

import asyncio
import os
import socket
import struct
from collections.abc import Iterator
from typing import cast

import pytest

from known_connection import BODY, CHUNKS, END, HEAD, HEARD, Known, Wire
from radixgate.gateway.heads.chunks import COMPILED
from radixgate.gateway.loop.loop_turn import AT_ONCE_BYTES, LoopTurn
from radixgate.gateway.upstream.late_bytes import WORTH_A_READ_BYTES, LateBytes

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


@pytest.mark.parametrize("tls", [False, True])
def test_what_has_come_is_seen_and_left_under_tls_too(pair: Pair, tls: bool) -> None:
    late = LateBytes(cast(asyncio.Transport, Wire(pair[0], tls=tls)), LoopTurn())
    assert not late.has_come()
    pair[1].sendall(b"more")
    assert late.has_come()
    assert pair[0].recv(10) == b"more"
    assert not late.has_come()
    pair[1].close()
    assert late.has_come(), "the end, too"


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


async def test_what_a_late_read_finds_wrong_is_why_the_connection_was_lost() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs = server.accept()[0]
    with ours, theirs:
        ours.setblocking(False)
        known = Known(ours)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        listener = known.ask(HEAD + LONG)
        known.connection.connection_lost(None)
    assert listener.told[-1] == (
        "worker http://127.0.0.1:1: the connection was lost ([Errno 104] Connection reset by peer)"
        " in the middle of an answer, True"
    )


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
