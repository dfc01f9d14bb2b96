"""Ranges that settings of several commands share."""

from radixgate.errors import ConfigError


def check_port(name: str, port: int) -> None:
    """Raises ConfigError for what is no port; 0 is one, and takes any that is free."""
    if not 0 <= port <= 65_535:
        raise ConfigError(f"{name} is {port}, it must be from 0 to 65535")
