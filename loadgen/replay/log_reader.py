"""A decision log, read back line by line."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError
from radixgate.fleet.decision_lines import VERSION, DecisionLine, Line, StartLine, decode_line


@dataclass(slots=True)
class Gaps:
    """What of a log is not there; grows as it is read."""

    unreadable: int = 0  # lines that are none of ours, one cut off at the end among them
    missing: int = 0  # decisions between others whose numbers are not there: they were dropped
    before: int = 0  # decisions before the first of a run: they stand in an older file


def read_log(path: Path, gaps: Gaps) -> Iterator[Line]:
    """In the order of the file; one line in memory.

    Raises ConfigError if the file cannot be read, holds no decision, or is of a later version.
    """
    last: dict[str, int] = {}  # by run, the number of its last decision
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for data in file:
                try:
                    line = decode_line(data)
                except msgspec.MsgspecError:
                    gaps.unreadable += 1
                    continue
                match line:
                    case StartLine():
                        _check_version(path, line)
                    case DecisionLine() if line.run not in last:
                        gaps.before += line.n - 1
                        last[line.run] = line.n
                    case DecisionLine():
                        gaps.missing += line.n - last[line.run] - 1
                        last[line.run] = line.n
                yield line
    except (OSError, EOFError, zlib.error) as exc:
        raise ConfigError(f"{path} cannot be read: {exc}") from exc
    if not last:
        raise ConfigError(f"{path} holds no decision, and {gaps.unreadable} lines that are none")


def _check_version(path: Path, line: StartLine) -> None:
    if line.version > VERSION:
        raise ConfigError(
            f"{path} is of version {line.version}, and this radixgate reads up to {VERSION}"
        )
