"""Listening on `::` as elsewhere: for IPv4 beside IPv6, where asyncio would take IPv6 alone."""

import socket
from ipaddress import IPv6Address


def on_every_address(host: str, port: int, *, shared: bool = False) -> socket.socket | None:
    """A bound socket for whoever listens; None: `host` is any other, and can be given by name.

    `shared`: by several processes. Raises OSError if it cannot be had.
    """
    if not _is_every_one(host):
        return None
    bound = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def _is_every_one(host: str) -> bool:
    try:
        return IPv6Address(host).is_unspecified
    except ValueError:
        return False
