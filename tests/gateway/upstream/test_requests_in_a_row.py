"""Requests to workers go out by the same call of the kernel's as answers to clients do."""

import asyncio
import socket
from typing import cast

import pytest

from clocks import FakeClock
from known_connection import Wire
from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.loop.row_writes import WORTH_A_ROW, RowWrites
from radixgate.gateway.upstream.connection import UpstreamConnection
from radixgate.gateway.upstream.pool import UpstreamPool


class Ring:
    """Keeps each row that is worth it by the numbers of its sockets."""

    def __init__(self) -> None:
        self.rows: list[dict[int, bytes]] = []

    def send(
        self,
        waiting: dict[asyncio.Transport, bytes],
        fds: dict[asyncio.Transport, int],
        least: int,
        /,
    ) -> list[tuple[asyncio.Transport, bytes]]:
        sent = {fds[to]: data for to, data in waiting.items() if to in fds}
        if len(sent) < least:
            return list(waiting.items())
        self.rows.append(sent)
        return [(to, data) for to, data in waiting.items() if to not in fds]


class SentOn(Wire):
    """Keeps what it is told to write."""

    def __init__(self, sock: socket.socket, *, tls: bool) -> None:
        super().__init__(sock, tls=tls)
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_write_buffer_size(self) -> int:
        return 0


class Unheard:
    """A listener of whom nothing is asked."""

    def on_response(self, status: int, headers: Headers) -> None: ...
    def on_data(self, data: bytes) -> None: ...
    def on_complete(self) -> None: ...
    def on_answer(self, status: int, headers: Headers, body: bytes) -> None: ...
    def on_broken(self, error: RadixgateError, answered: bool) -> None: ...


@pytest.mark.parametrize("tls", [False, True], ids=["in-the-clear", "tls"])
async def test_requests_of_one_turn_are_one_row_until_their_connections_are_lost(tls: bool) -> None:
    ring, clock = Ring(), FakeClock()
    turn = LoopTurn(RowWrites(ring))
    pool = UpstreamPool(
        "127.0.0.1",
        1,
        clock=clock,
        deadlines=Deadlines(clock),
        turn=turn,
        max_idle=2,
        idle_timeout_s=10.0,
    )
    wires, connections = [], []
    for _ in range(WORTH_A_ROW):
        wires.append(SentOn(socket.socket(), tls=tls))
        connections.append(UpstreamConnection(pool))
        connections[-1].connection_made(cast(asyncio.Transport, wires[-1]))
    for number, connection in enumerate(connections):
        connection.send(b"head %d " % number, b"body", Unheard())
    turn.end()
    sent = [b"head %d body" % number for number in range(WORTH_A_ROW)]
    sockets = [cast(socket.socket, wire.info["socket"]) for wire in wires]
    if tls:
        assert (ring.rows, [wire.written for wire in wires]) == ([], [[one] for one in sent])
    else:
        fds = [sock.fileno() for sock in sockets]
        assert ring.rows == [dict(zip(fds, sent, strict=True))]
    connections[0].connection_lost(None)
    for connection in connections[1:]:
        connection.send(b"head", b"", Unheard())
    turn.end()
    assert len(ring.rows) == (0 if tls else 1), "one less is no row"
    for sock in sockets:
        sock.close()
