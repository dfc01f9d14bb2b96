"""YAML files that may hold keys: read, or refused without quoting one."""

import re
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from radixgate.errors import ConfigError

T = TypeVar("T")

# What these say is ours, or a short word that was meant for a field; others may quote a key.
_OUR_WORDS = re.compile(
    r"Expected |Object missing required field "
    r"|Object contains unknown field `[a-z_]{1,24}`(?: - at `\$[^`]*`)?$"
)
_PLACE = re.compile(r" - at `\$[^`]*`$")


def read_secret_yaml(knob: str, path: str, shape: type[T]) -> T:
    """The file as `shape`. Raises ConfigError naming `knob` or the place, quoting no value."""
    try:
        value = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        return msgspec.convert(value, shape)
    except OSError as exc:
        raise ConfigError(f"{knob} {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{knob} {path}: not UTF-8 at byte {exc.start}") from exc
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        # Not `from exc`: it quotes the line, which may hold a key written there by mistake.
        raise ConfigError(f"{path}:{line}: not YAML") from None
    except yaml.YAMLError:
        raise ConfigError(f"{knob} {path}: not YAML") from None
    except msgspec.ValidationError as exc:
        raise ConfigError(f"{knob} {path}: {_unquoted(str(exc))}") from None
    except RecursionError:
        raise ConfigError(f"{knob} {path}: nests too deep") from None
    except ValueError:
        raise ConfigError(f"{knob} {path}: a date or a number in it is none") from None


def _unquoted(message: str) -> str:
    if _OUR_WORDS.match(message):
        return message
    place = _PLACE.search(message)
    return f"a field or value that is not known{place[0] if place else ''}"
