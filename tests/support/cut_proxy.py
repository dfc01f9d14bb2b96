"""A TCP relay to one address that can be cut and restored: the network between two processes."""

import asyncio
import contextlib
from types import TracebackType
from typing import Self


class CutProxy:
    """`async with CutProxy(port) as proxy`: relays what comes to `proxy.port` on 127.0.0.1."""

    def __init__(self, to_port: int) -> None:
        self.port = 0
        self._to_port = to_port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        await self.restore()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.cut()

    async def restore(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Drop what is on its way, and refuse new connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._to_port)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, back}
        with contextlib.suppress(OSError):
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        for one in (writer, back):
            one.transport.abort()
            self._open.discard(one)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()
