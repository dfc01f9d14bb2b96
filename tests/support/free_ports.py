"""Ports at which nobody listens, for who must be told one before it is there."""

import random
import socket


def free_ports(count: int) -> list[int]:
    """Different ones, from below those that a system deals out to whoever asks for any: until they
    are used, no connection of somebody else takes them."""
    found: list[int] = []
    for port in random.sample(range(21_000, 32_000), 1_000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"no {count} free ports among a thousand")


def free_port() -> int:
    return free_ports(1)[0]
