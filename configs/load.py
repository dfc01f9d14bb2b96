"""The one loader: defaults, environment, YAML file, `--set` and flags, the last one wins."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from radixgate.configs.command import SET_FLAG, Command
from radixgate.configs.declare import Knob
from radixgate.configs.files import entries_of
from radixgate.configs.flags import FlagsGiven, parse_flags
from radixgate.configs.values import Given, value_of
from radixgate.errors import ConfigError

Config = TypeVar("Config")


@dataclass(frozen=True, slots=True)
class Settings:
    """The config objects of one run."""

    sections: Mapping[str, object]  # by section name

    def of(self, config: type[Config]) -> Config:
        """The section of this class. Raises TypeError if the command has none."""
        for value in self.sections.values():
            if isinstance(value, config):
                return value
        raise TypeError(f"no section is a {config.__name__}")


def load(
    command: Command, argv: Sequence[str], environ: Mapping[str, str] | None = None
) -> Settings:
    """The settings of `radixgate NAME argv`; `--help` prints and exits with 0.

    `environ` stands in for the process's environment in tests. Raises ConfigError: one line that
    names the flag or the file and line, and what is expected there.
    """
    flags = parse_flags(command, argv)
    values: dict[str, dict[str, object]] = {section: {} for section in command.sections}
    environ = os.environ if environ is None else environ
    for section, knob, given in _everything_given(command, flags, environ):
        values[section][knob.name] = value_of(knob, given)
    for section, knob in command.knobs():
        if knob.required and knob.name not in values[section]:
            raise ConfigError(f"{knob.flags[0]} must be given (in a file: {section}.{knob.name})")
    return Settings(
        {section: config(**values[section]) for section, config in command.sections.items()}
    )


def _everything_given(
    command: Command, flags: FlagsGiven, environ: Mapping[str, str]
) -> Iterator[tuple[str, Knob, Given]]:
    """Weakest source first. All are read, so that a wrong line in a file shows under any flag."""
    for section, knob in command.knobs():
        # Set but empty is how shells unset a variable for one command.
        if knob.env and environ.get(knob.env):
            yield section, knob, Given(environ[knob.env], knob.env)
    if flags.config is not None:
        for entry in entries_of(Path(flags.config)):
            knob = command.knob(entry.section, entry.key, entry.at)
            yield entry.section, knob, entry.given
    for setting in flags.set:
        section, key, value = _split(setting)
        yield section, command.knob(section, key, f"{SET_FLAG} {setting}"), value
    yield from flags.knobs


def _split(setting: str) -> tuple[str, str, Given]:
    name, equals, value = setting.partition("=")
    section, dot, key = name.replace("-", "_").partition(".")
    if not (equals and dot and section and key):
        raise ConfigError(f"{SET_FLAG} {setting}: write it as section.key=value")
    return section, key, Given(value, f"{SET_FLAG} {section}.{key}")
