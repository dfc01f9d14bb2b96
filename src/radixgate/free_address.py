"""Whether an address can be listened on, asked before anything that takes long."""

import errno
import socket

from radixgate.errors import ConfigError
from radixgate.every_address import on_every_address


def check_free(host: str, port: int) -> None:
    """Bind as the gateway will, and let go; port 0 is always free.

    Raises ConfigError if the address cannot be had; with the way out where another port is one.
    """
    lacking: OSError | None = None
    bound = False
    try:
        everywhere = on_every_address(host, port)
        if everywhere is not None:
            everywhere.close()
            return
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in found:
            try:
                opened = socket.socket(family, kind, protocol)
            except OSError as exc:  # of a family that the kernel lacks: the gateway passes it over
                lacking = exc
                continue
            with opened as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:  # or `::` would take the port of IPv4, too
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
            bound = True
        if lacking is not None and not bound:
            raise lacking
    except UnicodeError as exc:  # a name that no host can have
        raise ConfigError(f"cannot listen on {host}:{port}: {exc}") from exc
    except OSError as exc:
        way_out = ""
        if exc.errno in (errno.EADDRINUSE, errno.EACCES):
            way_out = "; --port takes another, and 0 picks a free one"
        raise ConfigError(f"cannot listen on {host}:{port}: {exc}{way_out}") from exc
