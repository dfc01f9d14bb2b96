"""An answer on its way to a client, who takes it at its own pace, or not at all."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Protocol

from aiohttp import HttpVersion11, web

from radixgate.errors import RadixgateError
from radixgate.proto import sse
from radixgate.proto.error_body import error_event

# Without a byte taken: what the gateway's clients are given, too.
STALL_TIMEOUT_S = 600.0
_LOOKS = 10


class Source(Protocol):
    """The bytes of an answer, as they come about."""

    @property
    def content_type(self) -> bytes: ...

    def pieces(self) -> AsyncIterator[bytes]: ...


class Outlet(Protocol):
    """What is watched of a connection's transport."""

    def get_write_buffer_size(self) -> int: ...

    def abort(self) -> None: ...


class StallWatch:
    """Cuts a connection on which bytes wait and none is taken.

    `look` is called `_LOOKS` times within the time allowed.
    """

    def __init__(self, transport: Outlet) -> None:
        self._transport = transport
        self._waited: float = math.inf  # bytes that waited when it last looked
        self._looks = 0  # in a row, in which nothing was taken

    def wrote(self) -> None:
        """Writing went on: what waits may be more now, although some was taken."""
        self._waited = math.inf

    def look(self) -> bool:
        """False once the connection has been cut."""
        waits = self._transport.get_write_buffer_size()
        self._looks = self._looks + 1 if 0 < waits >= self._waited else 0
        self._waited = waits
        if self._looks < _LOOKS:
            return True
        self._transport.abort()
        return False


async def send(
    http: web.Request,
    answer: Source,
    request_id: str,
    stall_timeout_s: float = STALL_TIMEOUT_S,
) -> web.StreamResponse:
    """To its last byte. Raises what `pieces` raises before its first one; later it is an event."""
    # The status is fixed only once something has come: a refusal is an error, never a 200.
    pieces = answer.pieces()
    piece: bytes | None = await anext(pieces)
    response = web.StreamResponse(
        headers={"content-type": answer.content_type.decode(), "x-request-id": request_id}
    )
    if answer.content_type == sse.CONTENT_TYPE:
        response.headers["cache-control"] = "no-cache"
    if http.version < HttpVersion11:
        # Its body has no length and no chunks, and aiohttp would leave the connection open.
        response.force_close()
    transport = http.transport
    if transport is None:
        raise ConnectionResetError("the client has left")
    with _watched(transport, stall_timeout_s) as watch:
        await response.prepare(http)
        try:
            while piece is not None:
                await response.write(piece)
                watch.wrote()
                piece = await anext(pieces, None)
        except RadixgateError as error:
            await response.write(error_event(error) + sse.DONE)
        # Nobody watches a connection between two requests, so all is to be taken by then. Of TLS
        # the last 64 KB may be on their way below; its closing has a time-out of its own.
        _wait_above(transport, 0)
        await response.write_eof()
        _wait_above(transport, None)
    return response


def _wait_above(transport: asyncio.Transport, size: int | None) -> None:
    """A write waits while more bytes than these are not taken; None: as many as usual."""
    if not transport.is_closing():
        transport.set_write_buffer_limits(high=size)


@contextmanager
def _watched(transport: asyncio.Transport, stall_timeout_s: float) -> Iterator[StallWatch]:
    loop, watch = asyncio.get_running_loop(), StallWatch(transport)
    timer: asyncio.TimerHandle

    def look() -> None:
        nonlocal timer
        if watch.look():
            timer = loop.call_later(stall_timeout_s / _LOOKS, look)

    timer = loop.call_later(stall_timeout_s / _LOOKS, look)
    try:
        yield watch
    finally:
        timer.cancel()
