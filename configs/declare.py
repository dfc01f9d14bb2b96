"""How a knob is declared: a field of a frozen dataclass, beside the code that uses it.

    @dataclass(frozen=True, slots=True)
    class CacheAwareConfig:
        cache_threshold: float | None = knob(None, help="share of the prompt that must match")

Flags (`--cache-threshold`), YAML keys (`cache_threshold`) and docs/configs.md come from it.
"""

import types
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Union, get_args, get_origin, get_type_hints

_HELP = "radixgate.knob"


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting, as read off its dataclass field."""

    name: str
    type: type  # of one value: int, float, str or bool
    many: bool  # the value is a tuple of such values
    optional: bool  # None is allowed, with the meaning that the help gives
    default: object  # MISSING: must be given
    help: str
    unit: str
    choices: tuple[str, ...]
    flags: tuple[str, ...]  # the first is the name shown


def knob(
    default: Any = MISSING,
    *,
    help: str,
    unit: str = "",
    choices: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> Any:
    """A dataclass field with what a flag and a docs page need.

    `flags` are further spellings (`--tp` for `--tp-size`); the first flag is always the field's name
    with dashes. A bool becomes `--name` / `--no-name`.
    """
    about = {"help": help, "unit": unit, "choices": tuple(choices), "flags": tuple(flags)}
    return field(default=default, metadata={_HELP: about})


def knobs_of(config: type) -> list[Knob]:
    """The knobs of a config dataclass in order. Fields without `knob()` are not settings."""
    hints = get_type_hints(config)
    return [
        _read(item.name, hints[item.name], item.default, item.metadata[_HELP])
        for item in fields(config)
        if _HELP in item.metadata
    ]


def _read(name: str, hint: Any, default: object, about: dict[str, Any]) -> Knob:
    optional = get_origin(hint) in (Union, types.UnionType)
    if optional:
        (hint,) = [part for part in get_args(hint) if part is not types.NoneType]
    many = get_origin(hint) is tuple
    if many:
        hint = get_args(hint)[0]
    if hint not in (int, float, str, bool):
        raise TypeError(f"knob {name}: {hint} is not a type a flag can carry")
    flags = ("--" + name.replace("_", "-"), *about["flags"])
    return Knob(
        name, hint, many, optional, default, about["help"], about["unit"], about["choices"], flags
    )
