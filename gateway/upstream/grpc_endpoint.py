"""Where a worker of ours listens, and how its streams of messages are connected to it."""

import asyncio
import ssl
from dataclasses import dataclass

from radixgate.gateway.upstream.dial import dial

# TCP and TLS. A worker that returns is to be noticed soon.
CONNECT_S = 2.0


class NotConnected(Exception):
    """Nobody listens, or nobody that can be believed; its text says why."""


@dataclass(frozen=True, slots=True)
class GrpcEndpoint:
    """A host and port, and who is believed to be there."""

    host: str
    port: int
    authority: str  # its name in requests
    tls: ssl.SSLContext | None  # None: in the clear

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"

    async def connect(self, protocol: asyncio.Protocol) -> None:
        """Raises NotConnected."""
        try:
            async with asyncio.timeout(CONNECT_S):
                await dial(lambda: protocol, self.host, self.port, self.tls)
        except TimeoutError as exc:
            raise NotConnected(f"no connection within {CONNECT_S:g} s") from exc
        except OSError as exc:
            raise NotConnected(str(exc) or type(exc).__name__) from exc
