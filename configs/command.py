"""A command as its settings see it: the sections it takes and the foreign flags it refuses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import getdoc

from radixgate.configs.declare import Knob, knobs_of
from radixgate.configs.spelling import nearest
from radixgate.errors import ConfigError

# Flags that every command has beside its knobs.
CONFIG_FLAG = "--config"
SET_FLAG = "--set"
OWN_FLAGS = ("-h", "--help", CONFIG_FLAG, SET_FLAG)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a flag that users bring along is not taken.

    `accepts` lists values under which the flag asks for nothing that is not so already (one worker
    is one rank, so `--tp-size 1` passes); the empty string stands for the flag without a value.
    """

    reason: str
    accepts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """What `radixgate NAME` can be told. Raises TypeError where two sections claim one flag."""

    name: str
    about: str  # one sentence, for --help and the docs page
    sections: Mapping[str, type]  # section name (underscores) -> frozen dataclass of knobs
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    # The flag that words before the first flag belong to; empty: no word may stand there.
    first: str = ""
    # How --help shows those words, where they are never written as a flag.
    words: str = ""
    # Sections that hold entries by name, each with the knobs of one dataclass; they have no flags.
    named: Mapping[str, type] = field(default_factory=dict)

    def __post_init__(self) -> None:
        owners: dict[str, str] = dict.fromkeys(OWN_FLAGS, "every command")
        for section, knob in self.knobs():
            for flag in spellings(knob):
                if flag in owners:
                    raise TypeError(
                        f"radixgate {self.name}: {flag} belongs to {owners[flag]} and to {section}"
                    )
                owners[flag] = section
        for flag in self.refused:
            if flag in owners:
                raise TypeError(f"radixgate {self.name}: {flag} of {owners[flag]} is also refused")

    def knobs(self) -> Iterator[tuple[str, Knob]]:
        """Every knob with the name of its section, in order of declaration."""
        for section, config in self.sections.items():
            for knob in knobs_of(config):
                yield section, knob

    def knob(self, section: str, key: str, where: str) -> Knob:
        """The knob at `section.key`. Raises ConfigError that names the nearest right one."""
        if section in self.named:
            return self._named_knob(section, key, where)
        name = f"{section}.{key}"
        by_name = {f"{owner}.{knob.name}": knob for owner, knob in self.knobs()}
        if name in by_name:
            return by_name[name]
        if section not in self.sections:
            raise ConfigError(f"{where}: {self._no_section(section)}")
        mates = [other for other in by_name if other.startswith(f"{section}.")]
        moved = [other for other in by_name if other.endswith(f".{key}")]
        meant = moved[0] if moved else nearest(name, mates or by_name)
        raise ConfigError(f"{where}: no setting {name}; nearest is {meant}")

    def _named_knob(self, section: str, key: str, where: str) -> Knob:
        """`key` is `NAME.setting`."""
        name, dot, setting = key.rpartition(".")
        by_name = {knob.name: knob for knob in knobs_of(self.named[section])}
        if not dot or not name:
            raise ConfigError(f"{where}: write it as {section}.NAME.setting")
        if setting not in by_name:
            meant = f"{section}.{name}.{nearest(setting, by_name)}"
            raise ConfigError(f"{where}: no setting {section}.{key}; nearest is {meant}")
        return by_name[setting]

    def _no_section(self, section: str) -> str:
        homes = [owner for owner, knob in self.knobs() if knob.name == section]
        if homes:
            return f"{section} is not a section but a setting: write {homes[0]}.{section}"
        return f"no section {section}; nearest is {nearest(section, [*self.sections, *self.named])}"


def spellings(knob: Knob) -> list[str]:
    """Every flag that sets the knob, the one shown first."""
    if knob.type is not bool:
        return list(knob.flags)
    return [*knob.flags, *("--no-" + flag.removeprefix("--") for flag in knob.flags)]


def describe(config: type) -> str:
    """The first paragraph of a config's docstring on one line; empty for a generated one."""
    text = getdoc(config) or ""
    if text.startswith(f"{config.__name__}("):  # dataclass writes its signature where none is
        return ""
    return " ".join(text.split("\n\n")[0].split())
