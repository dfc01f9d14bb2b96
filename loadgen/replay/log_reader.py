"""A decision log, read back line by line."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError
from radixgate.fleet.decision_lines import (
    VERSION,
    DecisionLine,
    Line,
    StartLine,
    decode_line,
    unpacked,
)
from radixgate.loadgen.trace_rows import lines_of


@dataclass(slots=True)
class Gaps:
    """What of a log is not there; grows as it is read."""

    unreadable: int = 0  # lines that are none of ours, one cut off at the end among them
    missing: int = 0  # decisions between others whose numbers are not there: they were dropped
    before: int = 0  # decisions before the first of a run: they stand in an older file


def read_log(path: Path, gaps: Gaps) -> Iterator[Line]:
    """In the order of the file; one line in memory.

    Raises ConfigError if the file cannot be read, holds no decision, is of a later version, or has
    a line that contradicts itself or those before, with its number.
    """
    last: dict[str, int] = {}  # by run, the number of its last decision
    for number, data in enumerate(lines_of(path), 1):
        try:
            line = decode_line(data)
        except msgspec.MsgspecError:
            gaps.unreadable += 1
            continue
        match line:
            case StartLine():
                _check_version(path, line)
            case DecisionLine():
                _check_decision(f"{path}:{number}", line, last.get(line.run, 0))
                if line.run in last:
                    gaps.missing += line.n - last[line.run] - 1
                else:
                    gaps.before += line.n - 1
                last[line.run] = line.n
        yield line
    if not last:
        raise ConfigError(f"{path} holds no decision, and {gaps.unreadable} lines that are none")


def _check_version(path: Path, line: StartLine) -> None:
    if line.version > VERSION:
        raise ConfigError(
            f"{path} is of version {line.version}, and this radixgate reads up to {VERSION}"
        )


def _check_decision(where: str, line: DecisionLine, before: int) -> None:
    """`before`: the number of its run's last decision."""
    if line.n <= before:
        raise ConfigError(
            f"{where}: decision {line.n} of run {line.run} stands behind its decision {before}:"
            " give each file once, the older first"
        )
    sizes = sorted({len(column) for column in msgspec.structs.astuple(line.candidates)})
    if len(sizes) > 1:
        raise ConfigError(
            f"{where}: columns of {sizes[0]} and of {sizes[-1]} candidates in one decision"
        )
    try:
        unpacked(line.blocks)
    except ValueError as error:
        raise ConfigError(f"{where}: blocks: {error}") from error
