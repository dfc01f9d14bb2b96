"""What a connection has brought since the event loop read it, earlier in the same turn."""

import asyncio
import os
import select

from radixgate.gateway.heads.http_answer import LAST_CHUNK
from radixgate.gateway.loop.loop_turn import AT_ONCE_BYTES, LoopTurn

# A shorter piece is a slow stream's, behind which nothing more has come.
WORTH_A_READ_BYTES = 1_024


class LateBytes:
    """Reads on where the loop has stopped, so that two pieces become one.

    The loop reads all connections before any of it is worked off. What has come by then would take
    a turn of its own, with one more read and write, and be sent later. Nothing is waited for.
    """

    __slots__ = ("_fd", "_has_come", "_transport", "_turn", "error")

    def __init__(self, transport: asyncio.Transport, turn: LoopTurn) -> None:
        sock = transport.get_extra_info("socket")
        fd = -1 if sock is None else sock.fileno()
        # Under TLS what the socket holds is not what its protocol gets: it is not read past that.
        self._fd = fd if transport.get_extra_info("sslcontext") is None else -1
        poll = select.poll()
        if fd >= 0:
            poll.register(fd, select.POLLIN)
        self._has_come = poll.poll
        self._transport, self._turn = transport, turn
        self.error: OSError | None = None  # for which the connection was ended

    def has_come(self) -> bool:
        """Something that has not been read, or an end; of an open connection. Under TLS it need not
        be for its protocol."""
        return bool(self._has_come(0))

    def behind(self, data: bytes, queued: int = 0) -> bytes:
        """`data`, of an answer in chunks, and what has come behind it. 1 us where nothing has.
        `queued`: pieces of the connection that were read after it, and have their turn first."""
        if len(data) < WORTH_A_READ_BYTES or len(data) >= AT_ONCE_BYTES or self._turn.at_once:
            return data  # a large one, and any of such a turn, has just been read
        # Where very many had brought something the loop has polled twice for this turn.
        if queued:
            return data
        # A closed connection's number may be another's by now.
        if self._fd < 0 or data.endswith(LAST_CHUNK) or not self._transport.is_reading():
            return data
        # Two of three times nothing has, and to be told so by an error takes six times as long.
        if not self._has_come(0):
            return data
        try:
            return data + os.read(self._fd, AT_ONCE_BYTES)
        except BlockingIOError:
            return data
        except OSError as exc:
            # An error is told to one reader only, and the loop will not hear of it.
            self.error = exc
            self._transport.abort()
            return data
