"""Small writes to many connections, made together at the end of the loop's turn.

A write wakes the process at the other end, and that is most of its cost. Of several in a row the
first wakes it, and it is still awake for the others; spread over a turn each wakes it anew. But to
be called at the end of a turn costs another look at the sockets, so that it has to be worth it.
"""

import asyncio
import logging

_log = logging.getLogger(__name__)
# From here on the copying is what a write costs. So one connection keeps less than twice as much
# waiting here, and all of them no more than one turn of the loop has read.
AT_ONCE_BYTES = 16_384
# So many turns are looked at; with fewer writes than that in all, so many are made at once before
# turns are looked at again.
LOOKED_AT_TURNS = 16
WORTH_IT_WRITES = 40
AT_ONCE_WRITES = 512


class Outbox:
    """What waits for the end of this turn, by connection, in order. One loop's, as its users are.

    A slow peer's bytes go on to its transport, whose buffer tells its protocol to pause.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Transport, bytes] = {}
        self._called = False  # the loop will empty it
        self._turns = self._writes = 0  # of those that are looked at
        self._at_once = 0  # writes that do not wait; above zero nothing waits

    def put(self, transport: asyncio.Transport, data: bytes) -> None:
        """Write `data` behind what waits for this connection."""
        if self._at_once:
            self._at_once -= 1
            transport.write(data)
            return
        waiting = self._waiting
        if transport in waiting:
            data = waiting.pop(transport) + data
        if len(data) >= AT_ONCE_BYTES:
            transport.write(data)
            return
        waiting[transport] = data
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._empty)

    def send(self, transport: asyncio.Transport) -> None:
        """Write what waits for it now: something else is to be done to it."""
        data = self._waiting.pop(transport, None)
        if data is not None:
            transport.write(data)

    def _empty(self) -> None:
        self._called = False
        waiting, self._waiting = self._waiting, {}
        for transport, data in waiting.items():
            if transport.is_closing():
                continue  # nobody reads it any more
            try:
                transport.write(data)
            except Exception:
                # The others must not lose theirs.
                _log.exception("a connection could not be written to")
                transport.abort()
        # Last, so that nothing that a write brings about is made before what still waits.
        self._look(len(waiting))

    def _look(self, writes: int) -> None:
        self._turns += 1
        self._writes += writes
        if self._turns == LOOKED_AT_TURNS:
            if self._writes < WORTH_IT_WRITES:
                self._at_once = AT_ONCE_WRITES
            self._turns = self._writes = 0
