"""A request's body comes at a pace, or is refused: half of one holds no connection for ever."""

import asyncio
from dataclasses import dataclass

from aiohttp import web

from radixgate.errors import RequestTimeout


@dataclass(frozen=True, slots=True)
class BodyPace:
    """How slowly a body may come: what the gateway's clients may take, too."""

    piece_s: float = 30.0  # to the next piece
    bytes_per_s: float = 500.0  # on average, after the first `piece_s`

    def next_by(self, begun_s: float, now_s: float, size: int) -> float:
        """When the next piece must be there, if `size` bytes are there now."""
        return min(now_s, begun_s + size / self.bytes_per_s) + self.piece_s


async def read_body(http: web.Request, pace: BodyPace) -> bytes:
    """The whole body, of at most the application's `client_max_size`. O(bytes).

    Raises RequestTimeout, and aiohttp's errors for a body too large or not encoded as it says.
    """
    if http.content_length is not None and http.content_length > http.client_max_size:
        raise web.HTTPRequestEntityTooLarge(http.client_max_size, http.content_length)
    clock = asyncio.get_running_loop().time
    begun_s = clock()
    pieces: list[bytes] = []
    size = 0
    while piece := await _next(http, pace.next_by(begun_s, clock(), size)):
        pieces.append(piece)
        size += len(piece)
        if size > http.client_max_size:
            raise web.HTTPRequestEntityTooLarge(http.client_max_size, size)
    return b"".join(pieces)


async def _next(http: web.Request, by_s: float) -> bytes:
    try:
        async with asyncio.timeout_at(by_s):
            return await http.content.readany()
    except TimeoutError as exc:
        raise RequestTimeout(
            "the body did not arrive in time", code="timeout", param="body"
        ) from exc
