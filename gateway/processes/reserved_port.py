"""A port that several processes share, taken before any of them listens."""

import socket

from radixgate.errors import ConfigError


def reserve(host: str, port: int) -> socket.socket:
    """A socket that holds the port and never listens; 0 takes a free one.

    Raises ConfigError if somebody has it, or the host is none of ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # Without sharing, or another gateway's port would be taken for ours.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
        reserved = socket.socket(family, socket.SOCK_STREAM)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((host, port))
    except OSError as exc:
        raise ConfigError(f"cannot listen on {host}:{port}: {exc}") from exc
    return reserved
