"""Connects to a host by its name, of whose addresses some may be where nobody answers."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

# What an address gets before the next is tried beside it, as RFC 8305 has it: one after the other,
# the first that drops packets takes all the time there is.
HEAD_START_S = 0.25
# Of the process, and of the machine: no address is at fault.
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)
P = TypeVar("P", bound=asyncio.BaseProtocol)


@dataclass(frozen=True, slots=True)
class Address:
    """As the system's calls have it."""

    family: int
    where: tuple[object, ...]


async def dial(factory: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
    """The protocol, connected. Raises OSError; how long it may take is the caller's to say."""
    loop, name = asyncio.get_running_loop(), None if tls is None else host
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as exc:
        raise OSError(f"{host!r} is no name of a host: {exc}") from exc
    if len(found) == 1:
        address = str(found[0][4][0])
        _, protocol = await loop.create_connection(
            factory, address, port, ssl=tls, server_hostname=name
        )
        return protocol
    # Raced here, as uvloop's create_connection has no happy_eyeballs_delay.
    sock = await first_connected([Address(one[0], one[4]) for one in found], _connected)
    try:
        _, protocol = await loop.create_connection(
            factory, sock=sock, ssl=tls, server_hostname=name
        )
    except BaseException:
        sock.close()
        raise
    return protocol


async def first_connected(
    addresses: Iterable[Address], connect: Callable[[Address], Awaitable[socket.socket]]
) -> socket.socket:
    """To whichever answers first. The next is tried HEAD_START_S after the one before, or at once
    where one has failed. Raises OSError with what each said, or as it is where no file may
    be opened."""
    left, said = list(addresses), list[str]()
    running, tried = set[asyncio.Future[socket.socket]](), set[asyncio.Future[socket.socket]]()
    try:
        while left or running:
            if left:
                attempt = asyncio.ensure_future(connect(left.pop(0)))
                running.add(attempt)
                tried.add(attempt)
            done, running = await asyncio.wait(
                running,
                timeout=HEAD_START_S if left else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for one in done:
                try:
                    sock = one.result()
                except OSError as exc:
                    if exc.errno in OUT_OF_FILES:
                        raise
                    said.append(exc.strerror or str(exc))
                else:
                    tried.remove(one)
                    return sock
    finally:
        for one in tried:
            one.cancel()
            one.add_done_callback(_close)
    raise OSError("; ".join(said))


async def _connected(address: Address) -> socket.socket:
    # By its protocol asyncio knows that it is TCP, and sends without delay.
    sock = socket.socket(address.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address.where)
    except BaseException:
        sock.close()
        raise
    return sock


def _close(late: "asyncio.Future[socket.socket]") -> None:
    if not late.cancelled() and late.exception() is None:
        late.result().close()
