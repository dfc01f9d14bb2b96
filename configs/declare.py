"""How a knob is declared: a field of a frozen dataclass, beside the code that uses it.

    @dataclass(frozen=True, slots=True)
    class CacheAwareConfig:
        cache_threshold: float | None = knob(None, help="share of the prompt that must match")

Flags (`--cache-threshold`), YAML keys (`cache_threshold`) and docs/configs.md come from it.
"""

import types
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints, overload

_ABOUT = "radixgate.knob"
_TYPES = (int, float, str, bool)

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting, as read off its dataclass field."""

    name: str
    type: type[int] | type[float] | type[str] | type[bool]  # of one value
    many: bool  # the value is a tuple of such values
    optional: bool  # None is allowed, with the meaning that the help gives
    default: object  # MISSING: must be given
    help: str
    unit: str
    choices: tuple[str, ...]
    flags: tuple[str, ...]  # the first is the name shown
    env: str  # the environment variable that replaces the default; empty: none does

    @property
    def required(self) -> bool:
        return self.default is MISSING


@dataclass(frozen=True, slots=True)
class _About:
    help: str
    unit: str
    choices: tuple[str, ...]
    flags: tuple[str, ...]
    env: str


@overload
def knob(
    default: Value,
    *,
    help: str,
    unit: str = "",
    choices: Sequence[str] = (),
    flags: Sequence[str] = (),
    env: str = "",
) -> Value: ...


# As for dataclasses.field, which has no default value to take the type from either.
@overload
def knob(
    *,
    help: str,
    unit: str = "",
    choices: Sequence[str] = (),
    flags: Sequence[str] = (),
    env: str = "",
) -> Any: ...  # noqa: ANN401


def knob(
    default: object = MISSING,
    *,
    help: str,
    unit: str = "",
    choices: Sequence[str] = (),
    flags: Sequence[str] = (),
    env: str = "",
) -> object:
    """A dataclass field with what a flag and a docs page need. No default: it must be given.

    `flags` are further spellings (`--tp` for `--tp-size`); the first flag is always the field's
    name with dashes. A bool becomes `--name` / `--no-name`. `env` names the environment variable
    that stands in for the default; only the loader reads it.
    """
    about = _About(help, unit, tuple(choices), tuple(flags), env)
    if default is MISSING:
        return field(metadata={_ABOUT: about})
    return field(default=default, metadata={_ABOUT: about})


def knobs_of(config: type) -> list[Knob]:
    """The knobs of a config dataclass in order. Fields without `knob()` are not settings.

    Raises TypeError for a field whose type a flag cannot carry.
    """
    hints = get_type_hints(config)
    return [
        _read(item.name, hints[item.name], item.default, item.metadata[_ABOUT])
        for item in fields(config)
        if _ABOUT in item.metadata
    ]


def _read(name: str, hint: object, default: object, about: _About) -> Knob:
    optional = get_origin(hint) in (Union, types.UnionType)
    if optional:
        (hint,) = [part for part in get_args(hint) if part is not types.NoneType]
    many = get_origin(hint) is tuple
    if many:
        hint = get_args(hint)[0]
    for known in _TYPES:
        if hint is known:
            break
    else:
        raise TypeError(f"knob {name}: {hint} is not a type a flag can carry")
    return Knob(
        name=name,
        type=known,
        many=many,
        optional=optional,
        default=default,
        help=about.help,
        unit=about.unit,
        choices=about.choices,
        flags=("--" + name.replace("_", "-"), *about.flags),
        env=about.env,
    )
