"""The flags of a command, generated from its knobs."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from radixgate.configs.command import CONFIG_FLAG, SET_FLAG, Command, Refusal, describe, spellings
from radixgate.configs.declare import Knob
from radixgate.configs.spelling import nearest
from radixgate.configs.values import Given, written_form
from radixgate.errors import ConfigError

_METAVARS = {int: "INT", float: "NUMBER", str: "TEXT", bool: ""}


@dataclass(frozen=True, slots=True)
class FlagsGiven:
    """A parsed command line: what was written, by knob, and nothing that was not."""

    config: str | None  # the file of --config
    set: tuple[str, ...]  # each `section.key=value`
    knobs: tuple[tuple[str, Knob, Given], ...]  # with the knob's section


def parse_flags(command: Command, argv: Sequence[str]) -> FlagsGiven:
    """Read a command line; `--help` prints and exits with 0.

    Raises ConfigError for a refused flag (with the reason), for one that is unknown (with the
    nearest), and for one with too few or too many values.
    """
    parser = _parser(command)
    if command.first and argv and not argv[0].startswith("-"):
        argv = [command.first, *argv]
    found, rest = parser.parse_known_args(argv)
    if rest:
        raise _unknown(command, rest)
    given = vars(found)
    return FlagsGiven(
        config=given.pop("config", None),
        set=tuple(given.pop("set", ())),
        knobs=tuple(_knobs_given(command, given)),
    )


def _knobs_given(command: Command, given: dict[str, object]) -> Iterator[tuple[str, Knob, Given]]:
    for section, knob in command.knobs():
        value = given.get(_dest(section, knob))
        if value is None:
            continue
        written = tuple(value) if isinstance(value, list) else written_form(value)
        yield section, knob, Given(written, knob.flags[0])


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(message.removeprefix("argument "))


class _Refuse(argparse.Action):
    """Takes any number of values, so that the message is about the flag and not about them."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, *, default: object, refusal: Refusal
    ) -> None:
        super().__init__(option_strings, dest, nargs="*", default=default, help=argparse.SUPPRESS)
        self._refusal = refusal

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        words = [str(word) for word in values] if isinstance(values, list) else []
        if " ".join(words) in self._refusal.accepts:
            return
        shown = " ".join([option_string or "", *words])
        raise ConfigError(f"{shown}: {self._refusal.reason}")


def _parser(command: Command) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"radixgate {command.name}",
        usage=f"radixgate {command.name} {command.words} [flags]" if command.words else None,
        description=_literal(command.about),
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=32),
    )
    files = parser.add_argument_group("where settings come from")
    files.add_argument(CONFIG_FLAG, metavar="FILE", help="YAML file with the sections below")
    files.add_argument(
        SET_FLAG, metavar="SECTION.KEY=VALUE", action="append", help="one setting, over the file's"
    )
    for section, config in command.sections.items():
        group = parser.add_argument_group(section, _literal(describe(config)))
        for owner, knob in command.knobs():
            if owner == section:
                _add(group, section, knob, command.words if command.first in knob.flags else "")
    for flag, refusal in command.refused.items():
        parser.add_argument(flag, action=_Refuse, dest=f"refused {flag}", refusal=refusal)
    return parser


def _add(group: argparse._ArgumentGroup, section: str, knob: Knob, words: str) -> None:
    """`words`: what stands in help for the flag; empty: the flag itself."""
    help_text = _literal(_help(knob))
    dest = _dest(section, knob)
    if words:
        group.add_argument(
            *knob.flags, dest=dest, help=argparse.SUPPRESS, nargs="+", action="extend"
        )
        group.description = f"{group.description or ''} {_literal(knob.help)}".strip()
        return
    if knob.type is bool and not knob.many:
        group.add_argument(
            *knob.flags, dest=dest, action=argparse.BooleanOptionalAction, help=help_text
        )
        return
    # Choices stay with the knob: one wording for flags, files and --set.
    metavar = "{" + ",".join(knob.choices) + "}" if knob.choices else _METAVARS[knob.type]
    if knob.many:
        group.add_argument(
            *knob.flags, dest=dest, metavar=metavar, help=help_text, nargs="+", action="extend"
        )
    else:
        group.add_argument(*knob.flags, dest=dest, metavar=metavar, help=help_text)


def _help(knob: Knob) -> str:
    shown = written_form(knob.default) or "empty"
    default = "required" if knob.required else f"default: {shown}"
    unit = f"{knob.unit}; " if knob.unit else ""
    env = f"; environment: {knob.env}" if knob.env else ""
    return f"{knob.help} ({unit}{default}{env})"


def _unknown(command: Command, rest: Sequence[str]) -> ConfigError:
    unknown = next((word for word in rest if word.startswith("-")), None)
    if unknown is None:
        return ConfigError(f"{rest[0]}: a value that belongs to no flag")
    flag = unknown.split("=", 1)[0]
    known = [name for _, knob in command.knobs() for name in spellings(knob)]
    known += [CONFIG_FLAG, SET_FLAG, *command.refused]
    return ConfigError(
        f"{flag}: radixgate {command.name} has no such flag; nearest is {nearest(flag, known)}"
    )


def _dest(section: str, knob: Knob) -> str:
    return f"{section}.{knob.name}"


def _literal(text: str) -> str:
    return text.replace("%", "%%")
