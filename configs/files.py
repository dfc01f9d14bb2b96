"""A YAML file as settings that still know their line."""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from radixgate.configs.values import Given
from radixgate.errors import ConfigError

_STANDARD_TAG = "tag:yaml.org,2002:"
_NULL_TAG = _STANDARD_TAG + "null"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a config file: `section` holding `key`, as written."""

    section: str
    key: str  # in a section of named entries `NAME.setting`, the name as it was written
    given: Given
    at: str  # `fleet.yaml:3`


def entries_of(path: Path, named: Container[str] = ()) -> list[Entry]:
    """What the file sets, in order; dashes in names count as underscores.

    A section in `named` holds entries by name, and those hold the settings.
    Scalars stay text: a knob, not YAML, decides whether `1e-3` is a number and `no` is a name.
    Raises ConfigError with file and line.
    """
    root = _compose(path)
    if root is None or _is_null(root):
        return []
    entries: list[Entry] = []
    for section, section_at, body in _pairs(root, path, "a mapping of sections"):
        if _is_null(body):
            continue
        if section not in named:
            entries += _settings(section, "", body, path, section_at)
            continue
        for name, at, node in _pairs(body, path, f"{section} by name", section_at, exact=True):
            entries += _settings(section, f"{name}.", node, path, at)
    return entries


def _settings(
    section: str, name: str, body: yaml.Node, path: Path, owner_at: str
) -> Iterator[Entry]:
    what = f"a mapping of settings for {section}.{name}".rstrip(".")
    for setting, at, node in _pairs(body, path, what, owner_at):
        key = name + setting
        yield Entry(section, key, Given(_written(node, at), f"{at}: {section}.{key}"), at)


def _compose(path: Path) -> yaml.Node | None:
    try:
        text = path.read_text(encoding="utf-8")
        # compose, not load: nodes keep their line, and no tag is ever turned into an object.
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as exc:
        raise ConfigError(f"--config {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"--config {path}: not UTF-8 at byte {exc.start}") from exc
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise ConfigError(f"{path}:{line}: {exc.problem or 'not YAML'}") from exc
    except yaml.YAMLError as exc:
        raise ConfigError(f"--config {path}: not YAML") from exc
    return root


def _pairs(
    node: yaml.Node, path: Path, what: str, owner_at: str = "", *, exact: bool = False
) -> Iterator[tuple[str, str, yaml.Node]]:
    """Key, `file:line` and value of a mapping; an error for anything else and for a second key."""
    if not isinstance(node, yaml.MappingNode):
        at = owner_at or _at(path, node)
        raise ConfigError(f"{at}: expected {what}, not {_kind(node)}")
    seen: dict[str, str] = {}
    for key_node, value in node.value:
        at = _at(path, key_node)
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigError(f"{at}: expected a name, not {_kind(key_node)}")
        key = key_node.value if exact else key_node.value.replace("-", "_")
        if key in seen:
            raise ConfigError(f"{at}: {key} stands a second time; the first is {seen[key]}")
        seen[key] = at
        yield key, at, value


def _written(node: yaml.Node, at: str) -> str | tuple[str | None, ...] | None:
    if isinstance(node, yaml.SequenceNode):
        return tuple(_scalar(item, at) for item in node.value)
    return _scalar(node, at)


def _scalar(node: yaml.Node, at: str) -> str | None:
    if not isinstance(node, yaml.ScalarNode):
        raise ConfigError(f"{at}: expected one value, not {_kind(node)}")
    if not node.tag.startswith(_STANDARD_TAG):
        raise ConfigError(f"{at}: the tag {node.tag} has no meaning here")
    return None if _is_null(node) else str(node.value)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL_TAG


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "a mapping" if isinstance(node, yaml.MappingNode) else repr(node.value)


def _at(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
