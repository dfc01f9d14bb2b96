"""YAML files that may hold keys: read, or refused without a word of what stands in them."""

from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from radixgate.errors import ConfigError

T = TypeVar("T")


def read_secret_yaml(knob: str, path: str, shape: type[T]) -> T:
    """The file as `shape`. Raises ConfigError naming `knob` or the place, and quoting nothing."""
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
        raise ConfigError(f"{knob} {path}: {exc}") from exc
