"""Whether an address can be listened on, asked before anything that takes long."""

import socket

from radixgate.errors import ConfigError
from radixgate.every_address import on_every_address


def check_free(host: str, port: int) -> None:
    """Bind as the gateway will, and let go; port 0 is always free.

    Raises ConfigError, with the way out, if the address cannot be had.
    """
    try:
        everywhere = on_every_address(host, port)
        if everywhere is not None:
            everywhere.close()
            return
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:  # or `::` would take the port of IPv4, too
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
    except OSError as exc:
        raise ConfigError(
            f"cannot listen on {host}:{port}: {exc}; --port takes another, and 0 picks a free one"
        ) from exc
