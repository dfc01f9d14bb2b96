"""Small writes to many connections, made together at the end of the loop's turn.

A write wakes the process at the other end, and that is most of its cost. Of several in a row the
first wakes it, and it is still awake for the others; spread over a turn each wakes it anew.
"""

import asyncio
import logging

_log = logging.getLogger(__name__)
# From here on the copying is what a write costs. So one connection keeps less than twice as much
# waiting here, and all of them no more than one turn of the loop has read.
AT_ONCE_BYTES = 16_384


class Outbox:
    """What waits for the end of this turn, by connection, in order. One loop's, as its users are.

    A slow peer's bytes go on to its transport, whose buffer tells its protocol to pause.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Transport, bytes] = {}
        self._called = False  # the loop will empty it

    def put(self, transport: asyncio.Transport, data: bytes) -> None:
        """Write `data` behind what waits for this connection."""
        before = self._waiting.pop(transport, None)
        if before is not None:
            data = before + data
        if len(data) >= AT_ONCE_BYTES:
            transport.write(data)
            return
        self._waiting[transport] = data
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
