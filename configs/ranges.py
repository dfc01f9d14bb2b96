"""Ranges that settings of several commands share."""

from radixgate.configs.declare import knobs_of
from radixgate.errors import ConfigError

# Products of a few such amounts are still numbers; more of anything that is set means nothing.
_MOST = 1e12


def check_finite(config: object) -> None:
    """Raises ConfigError for a float knob of this dataclass that has no end, or as good as none."""
    for knob in knobs_of(type(config)):
        value = getattr(config, knob.name)
        if knob.type is float and value is not None and not -_MOST <= value <= _MOST:
            raise ConfigError(f"{knob.name} is {value:g}, it must be a number up to {_MOST:g}")


def check_port(name: str, port: int) -> None:
    """Raises ConfigError for what is no port; 0 is one, and takes any that is free."""
    if not 0 <= port <= 65_535:
        raise ConfigError(f"{name} is {port}, it must be from 0 to 65535")
