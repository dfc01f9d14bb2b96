"""The one loader: defaults, environment, YAML file, `--set` and flags, the last one wins."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from radixgate.configs.command import SET_FLAG, Command
from radixgate.configs.declare import Knob, knobs_of
from radixgate.configs.files import entries_of
from radixgate.configs.flags import FlagsGiven, parse_flags
from radixgate.configs.values import Given, value_of
from radixgate.errors import ConfigError

Config = TypeVar("Config")


@dataclass(frozen=True, slots=True)
class Settings:
    """The config objects of one run."""

    sections: Mapping[str, object]  # by section name
    # Of sections that hold entries by name: name -> config, in the order given.
    named: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    # The same command line with files as they are by then; raises as `load`. None: made by hand.
    again: "Callable[[], Settings] | None" = None

    def of(self, config: type[Config]) -> Config:
        """The section of this class. Raises TypeError if the command has none."""
        for value in self.sections.values():
            if isinstance(value, config):
                return value
        raise TypeError(f"no section is a {config.__name__}")

    def named_of(self, config: type[Config]) -> Mapping[str, Config]:
        """The entries of this class, by their names, of whatever section."""
        return {
            name: entry
            for entries in self.named.values()
            for name, entry in entries.items()
            if isinstance(entry, config)
        }


def load(
    command: Command, argv: Sequence[str], environ: Mapping[str, str] | None = None
) -> Settings:
    """The settings of `radixgate NAME argv`; `--help` prints and exits with 0.

    `environ` stands in for the process's environment in tests. Raises ConfigError: one line that
    names the flag or the file and line, and what is expected there.
    """
    flags = parse_flags(command, argv)
    values: dict[str, dict[str, object]] = {
        section: {} for section in (*command.sections, *command.named)
    }
    environ = os.environ if environ is None else environ
    for section, key, knob, given in _everything_given(command, flags, environ):
        values[section][key] = value_of(knob, given)
    for section, knob in command.knobs():
        if knob.required and knob.name not in values[section]:
            raise ConfigError(f"{knob.flags[0]} must be given (in a file: {section}.{knob.name})")
    return Settings(
        {section: config(**values[section]) for section, config in command.sections.items()},
        {
            section: _entries(section, config, values[section])
            for section, config in command.named.items()
        },
        again=lambda: load(command, argv, environ),
    )


def _entries(section: str, config: type, values: Mapping[str, object]) -> Mapping[str, object]:
    """From `NAME.setting` -> value to NAME -> config. Raises ConfigError that names the entry."""
    by_name: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        name, _, setting = key.rpartition(".")
        by_name.setdefault(name, {})[setting] = value
    return {
        name: named_entry(f"{section}.{name}", config, given) for name, given in by_name.items()
    }


def named_entry(name: str, config: type[Config], given: Mapping[str, object]) -> Config:
    """The config of one entry from its settings. Raises ConfigError with `name` before it."""
    for knob in knobs_of(config):
        if knob.required and knob.name not in given:
            raise ConfigError(f"{name}.{knob.name} must be given: {knob.help}")
    try:
        return config(**given)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error.message}") from error


def _everything_given(
    command: Command, flags: FlagsGiven, environ: Mapping[str, str]
) -> Iterator[tuple[str, str, Knob, Given]]:
    """Section, key, knob and what was written, the weakest source first.

    All are read, so that a wrong line in a file shows under any flag.
    """
    for section, knob in command.knobs():
        # Set but empty is how shells unset a variable for one command.
        if knob.env and environ.get(knob.env):
            yield section, knob.name, knob, Given(environ[knob.env], knob.env)
    if flags.config is not None:
        for entry in entries_of(Path(flags.config), command.named):
            knob = command.knob(entry.section, entry.key, entry.at)
            yield entry.section, entry.key, knob, entry.given
    for setting in flags.set:
        section, key, value = _split(setting)
        yield section, key, command.knob(section, key, f"{SET_FLAG} {setting}"), value
    for section, knob, given in flags.knobs:
        yield section, knob.name, knob, given


def _split(setting: str) -> tuple[str, str, Given]:
    name, equals, value = setting.partition("=")
    section, dot, key = name.partition(".")
    entry, entry_dot, key = key.rpartition(".")  # the name of an entry stays as it is written
    section, key = section.replace("-", "_"), entry + entry_dot + key.replace("-", "_")
    if not (equals and dot and section and key):
        raise ConfigError(f"{SET_FLAG} {setting}: write it as section.key=value")
    return section, key, Given(value, f"{SET_FLAG} {section}.{key}")
