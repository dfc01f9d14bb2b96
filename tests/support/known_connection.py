"""A connection to a worker of which one answer in chunks has come, without a loop that reads it."""

import asyncio
import socket
from typing import cast

from clocks import FakeClock
from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.upstream.connection import UpstreamConnection
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
