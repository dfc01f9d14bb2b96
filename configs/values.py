"""From what someone wrote to the value of a knob, or an error that says where and what."""

import math
from dataclasses import dataclass

from radixgate.configs.declare import Knob
from radixgate.errors import ConfigError

_BOOLS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_EXPECTED = {int: "an integer", float: "a number", bool: "true or false", str: "text"}


@dataclass(frozen=True, slots=True)
class Given:
    """A value as it was written, before anyone looked at its type."""

    written: str | tuple[str | None, ...] | None  # None: null; a tuple: a list
    where: str  # `fleet.yaml:3: gateway.port`, `--set gateway.port` or `--port`


def value_of(knob: Knob, given: Given) -> object:
    """The knob's value. One text stands for a list with commas; `none` for an optional knob's None.

    Raises ConfigError with the place, what is expected there, and what stands there.
    """
    written = given.written
    if knob.optional and (written is None or (written == "none" and "none" not in knob.choices)):
        return None
    if knob.many:
        if isinstance(written, str):
            written = tuple(part.strip() for part in written.split(",") if part.strip())
        if written is None:
            raise _unexpected(knob, given.where, None)
        return tuple(_one(knob, item, given.where) for item in written)
    if isinstance(written, tuple):
        raise ConfigError(f"{given.where}: expected {_expected(knob)}, not a list")
    return _one(knob, written, given.where)


def written_form(value: object) -> str:
    """A value as one would write it in a file or a flag; a list with commas."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(written_form(item) for item in value)
    return str(value)


def _one(knob: Knob, text: str | None, where: str) -> object:
    if text is None or (knob.choices and text not in knob.choices):
        raise _unexpected(knob, where, text)
    if knob.type is str:
        return text
    if knob.type is bool:
        if text.lower() not in _BOOLS:
            raise _unexpected(knob, where, text)
        return _BOOLS[text.lower()]
    try:
        number = knob.type(text)
    except ValueError:
        raise _unexpected(knob, where, text) from None
    if isinstance(number, float) and math.isnan(number):
        raise _unexpected(knob, where, text)
    return number


def _unexpected(knob: Knob, where: str, text: str | None) -> ConfigError:
    found = "nothing" if text is None else repr(text)
    return ConfigError(f"{where}: expected {_expected(knob)}, not {found}")


def _expected(knob: Knob) -> str:
    if knob.choices:
        return "one of " + ", ".join(knob.choices)
    return _EXPECTED[knob.type]
