"""The way of an admin's request through a child process to the parent: bytes, both ways."""

import asyncio
from typing import cast

# What may wait for a reader on either side before the other is no longer read.
_HIGH_BYTES = 65_536
_NOBODY = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n"
    b"content-type: application/json\r\ncontent-length: 89\r\n\r\n"
    b'{"error":{"message":"the parent process cannot be reached","type":"service_unavailable"}}'
)


class _Half(asyncio.Protocol):
    """One side: what it reads, the other writes."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None  # None: not there yet, or gone
        self.other: _Half | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=_HIGH_BYTES)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        other, self.other = self.other, None
        if other is not None and other.transport is not None:
            other.other = None
            # What is written still goes out.
            other.transport.close()


class Tunnel(_Half):
    """The client's side. Made for a connection whose first request is no generation."""

    def __init__(self, path: str) -> None:
        """`path`: of the parent's socket."""
        super().__init__()
        self._path = path
        self._first: list[bytes] = []  # read before there is a way; not more than one read's worth
        self._dialing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._dialing = asyncio.get_running_loop().create_task(self._dial())

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            super().data_received(data)
            return
        if not self._first and self.transport is not None:
            self.transport.pause_reading()
        self._first.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._dialing is not None:
            self._dialing.cancel()

    async def _dial(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, upstream = await loop.create_unix_connection(_Half, self._path)
        except OSError:
            if self.transport is not None:
                self.transport.write(_NOBODY)
                self.transport.close()
            return
        if self.transport is None:
            assert upstream.transport is not None
            upstream.transport.abort()
            return
        self.other, upstream.other = upstream, self
        first, self._first = self._first, []
        for data in first:
            self.data_received(data)
        self.transport.resume_reading()
