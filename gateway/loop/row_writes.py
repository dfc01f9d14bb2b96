"""A turn's writes to many connections, as one call of the kernel's.

A call for each costs more than getting into the kernel and out again: what it runs through there
and here does not stay in the processor's caches side by side. Where there is no compiler, or the
kernel gives no queue (an older one, or one told not to), each is written by its transport.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from typing import Protocol, cast

_log = logging.getLogger(__name__)
# So many are already worth more than the queue itself costs: a step of a few streams.
WORTH_A_ROW = 4


class Ring(Protocol):
    """The kernel's queue: see `row_compiled.Ring`."""

    def send(
        self,
        waiting: dict[asyncio.Transport, bytes],
        fds: dict[asyncio.Transport, int],
        least: int,
        /,
    ) -> list[tuple[asyncio.Transport, bytes]]: ...


try:
    from radixgate.gateway.loop.row_compiled import Ring as _CompiledRing
except ImportError:
    _open_ring: Callable[[], Ring] | None = None
else:
    _open_ring = _CompiledRing


def open_ring() -> Ring | None:
    """None: there is none here."""
    if _open_ring is None:
        return None
    try:
        ring = _open_ring()
        _try_out(ring)
    except OSError as exc:
        _log.info("no io_uring here, so each connection is written to by itself: %s", exc)
        return None
    return ring


def _try_out(ring: Ring) -> None:
    """Raises OSError if it does not send: Linux 5.5 opens one all the same, and so do some filters
    of calls."""
    one, other = socket.socketpair()
    with one, other:
        other.setblocking(False)
        transport = cast(asyncio.Transport, _Trial())
        if ring.send({transport: b"."}, {transport: one.fileno()}, 1) or other.recv(1) != b".":
            raise OSError("it opens, and sends nothing")


class _Trial:
    """What `Ring.send` asks a transport."""

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


class RowWrites:
    """Knows the sockets of connections. One loop's, as its users are."""

    def __init__(self, ring: Ring | None = None) -> None:
        """None: each is written by its transport."""
        self._ring = ring
        self._kept: dict[asyncio.Transport, bytes] = {}  # the kernel may still read these
        self._fds: dict[asyncio.Transport, int] = {}  # of those that are open

    def join(self, transport: asyncio.Transport) -> None:
        """It may be written to in a row, until it leaves."""
        sock = transport.get_extra_info("socket")
        # Under TLS what a socket takes is not what its connection is given.
        if sock is not None and transport.get_extra_info("sslcontext") is None:
            self._fds[transport] = sock.fileno()

    def leave(self, transport: asyncio.Transport) -> None:
        """Whether it has joined or not. Its socket's number may soon be another's."""
        self._fds.pop(transport, None)

    def write(self, waiting: dict[asyncio.Transport, bytes]) -> None:
        """Write each, behind what its transport has, whatever becomes of the others."""
        left: Iterable[tuple[asyncio.Transport, bytes]] = waiting.items()
        if self._ring is not None and len(waiting) >= WORTH_A_ROW:
            try:
                left = self._ring.send(waiting, self._fds, WORTH_A_ROW)
            except Exception:
                _log.exception("a row of writes failed; from now on each is made alone")
                self._ring, self._kept = None, waiting
                for transport in waiting:
                    transport.abort()  # nobody knows how much of it went out
                return
        for transport, data in left:
            _write(transport, data)


def _write(transport: asyncio.Transport, data: bytes) -> None:
    try:
        if not transport.is_closing():  # else nobody reads it any more
            transport.write(data)
    except Exception:
        give_up(transport)


def give_up(transport: asyncio.Transport) -> None:
    """Called where its write is caught: the others must not lose theirs."""
    _log.exception("a connection could not be written to")
    transport.abort()
