"""The port that clients know: what listens there, and how it closes."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from radixgate.clock import Clock
from radixgate.errors import ConfigError
from radixgate.every_address import on_every_address
from radixgate.gateway.asking.foreign_request import HOT_PATHS
from radixgate.gateway.compiled_parts import tell_compiled_parts
from radixgate.gateway.data_path import DataPath
from radixgate.gateway.entry.connections import Front
from radixgate.gateway.entry.http_front import FrontConnection
from radixgate.gateway.heads.request_head import HeadCache
from radixgate.gateway.heads.request_reader import FrontLimits
from radixgate.gateway.settings.header_rules import HeaderConfig

_DRAIN_LOOK_S = 0.05
# At the end, for refusals on their way to those who came too late.
_LAST_REFUSALS_S = 1.0
_BACKLOG = 4096
# A client that opens a connection and does not finish its handshake holds it for no longer.
_HANDSHAKE_S = 10.0
# Nor one that does not say goodbye.
_GOODBYE_S = 2.0


@dataclass(frozen=True, slots=True)
class Listening:
    """Where and how."""

    host: str
    port: int  # 0: a free one
    max_payload_size: int
    tls: ssl.SSLContext | None = None  # None: in the clear
    shared: bool = False  # with other processes, which get their share of the connections


class Door:
    """Opened once; then `drain` and `close`, or `close` alone."""

    def __init__(
        self,
        path: DataPath,
        headers: HeaderConfig,
        make_admin: Callable[[], asyncio.Protocol],
        listening: Listening,
        clock: Clock,
    ) -> None:
        """`make_admin`: who takes over the connections whose request is no generation."""
        self._listening = listening
        self._path = path
        self.front = Front(
            path.generator,
            make_admin,
            HOT_PATHS,
            FrontLimits(listening.max_payload_size),
            clock,
            path.deadlines,
            path.turn,
            path.own_headers,
            HeadCache(headers.to_worker()),
        )
        self._server: asyncio.AbstractServer | None = None
        self._closed = False  # generations are refused
        self.port = 0  # the one really taken, once open

    async def open(self) -> None:
        """Raises ConfigError if the address cannot be had."""
        # Here, as each process that has a door streams, and the parent of several has none.
        tell_compiled_parts(self._path.row_writes)
        self._path.deadlines.start()
        at = self._listening
        listen = partial(
            asyncio.get_running_loop().create_server,
            partial(FrontConnection, self.front),
            backlog=_BACKLOG,
            ssl=at.tls,
            ssl_handshake_timeout=_HANDSHAKE_S if at.tls else None,
            ssl_shutdown_timeout=_GOODBYE_S if at.tls else None,
        )
        try:
            bound = on_every_address(at.host, at.port, shared=at.shared)
            if bound is not None:
                self._server = await listen(sock=bound)
            else:
                self._server = await listen(
                    at.host, at.port, reuse_address=True, reuse_port=at.shared or None
                )
        except OSError as exc:
            raise ConfigError(f"cannot listen on {at.host}:{at.port}: {exc}") from exc
        self.port = self._server.sockets[0].getsockname()[1]

    def renew(self) -> None:
        """New requests go by what the data path has now."""
        self.front.own_headers = self._path.own_headers
        if not self._closed:
            self.front.generator = self._path.generator

    async def drain(self, accept_s: float, grace_s: float) -> None:
        """Take requests for `accept_s` more, then let running answers end, for at most `grace_s`,
        and those of requests that have begun to arrive.

        To the end probes get their answers, and generations that come too late a refusal; but none
        of these is waited for.
        """
        self.front.announce()
        await asyncio.sleep(accept_s)
        self._closed = True
        self.front.drain(self._path.closed_door())
        await self._quiet(grace_s)
        if self._server is not None:
            self._server.close()
        self._path.turn.end()
        await self._quiet(min(grace_s, _LAST_REFUSALS_S))

    async def _quiet(self, within_s: float) -> None:
        waited_s = 0.0
        while self.front.busy() and waited_s < within_s:
            await asyncio.sleep(_DRAIN_LOOK_S)
            waited_s += _DRAIN_LOOK_S

    def close(self) -> None:
        """Break off what still runs."""
        if self._server is not None:
            self._server.close()
        self.front.abort()
        self._path.deadlines.stop()
