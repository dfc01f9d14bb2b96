"""Traces in Mooncake's form as they are written: a line of JSON a request, lengths and no text."""

import gzip
import math
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError

# So many rows that agree on a size of their blocks do not do so by chance.
_ENOUGH_ROWS = 8


class TraceRow(msgspec.Struct):
    """One request. A hash id stands for a block of its prompt and everything before it."""

    input_length: int  # tokens
    output_length: int
    hash_ids: list[int]
    timestamp: float | None = None  # ms
    session: str | int | None = None
    session_id: str | int | None = None  # the same in other traces
    group_id: str | int | None = None
    turn: int = 0
    think: float | None = None  # s
    think_ms: float | None = None  # the same in other traces

    @property
    def at_s(self) -> float | None:
        """None: it has no time of its own."""
        return None if self.timestamp is None else self.timestamp / 1000.0

    @property
    def session_name(self) -> str | None:
        name = self.session if self.session_id is None else self.session_id
        return None if name is None else str(name)

    @property
    def group_name(self) -> str | None:
        return None if self.group_id is None else str(self.group_id)

    @property
    def think_before_s(self) -> float:
        """Between the answer before and this request; 0 if the trace does not tell."""
        if self.think_ms is not None:
            return max(0.0, self.think_ms / 1000.0)
        return max(0.0, self.think or 0.0)


def read_rows(path: Path, most: int | None = None) -> list[TraceRow]:
    """The first `most` requests of a file, plain or gzip; None: all of them.

    Raises ConfigError for a file that cannot be read or holds none, with the line.
    """
    rows: list[TraceRow] = []
    decode = msgspec.json.Decoder(TraceRow).decode
    for number, line in enumerate(lines_of(path), 1):
        if most is not None and len(rows) >= most:
            break
        if not line.strip():
            continue
        try:
            row = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}:{number}: {error}") from error
        if row.input_length < 1 or row.output_length < 0:
            raise ConfigError(
                f"{path}:{number}: {row.input_length} prompt tokens and"
                f" {row.output_length} of output are no request"
            )
        if row.timestamp is not None and row.timestamp < 0:
            raise ConfigError(f"{path}:{number}: timestamp {row.timestamp:g} is under 0")
        if row.hash_ids and min(row.hash_ids) < 0:
            raise ConfigError(f"{path}:{number}: hash id {min(row.hash_ids)} is under 0")
        rows.append(row)
    if not rows:
        raise ConfigError(f"{path} holds no requests")
    return rows


def check_block_size(path: Path, rows: Sequence[TraceRow], block_size: int, flag: str) -> None:
    """Raise ConfigError, with what to give, if no blocks of so many tokens have the rows' ids.

    A prompt has an id for each of its blocks, be the last one whole or not. One with fewer ends in
    a part that nobody shares; but where all rows agree on another size, this one is wrong. O(rows).
    """
    told = [(row.input_length, len(row.hash_ids)) for row in rows if row.hash_ids]
    longer_than = max((tokens / (ids + 1) for tokens, ids in told), default=0.0)
    shorter_than, tokens, ids = min(
        ((tokens / (ids - 1), tokens, ids) for tokens, ids in told if ids > 1),
        default=(math.inf, 0, 0),
    )
    if longer_than < shorter_than and len(told) >= _ENOUGH_ROWS:
        if not longer_than < block_size < shorter_than:
            size = _told_size(longer_than, shorter_than)
            raise ConfigError(
                f"{path} has an id for each {size} tokens of its prompts, not for each"
                f" {block_size}: give {flag} {size}"
            )
    elif block_size >= shorter_than:
        raise ConfigError(
            f"{path}: a prompt of {tokens} tokens has {ids} hash ids, more than it has blocks of"
            f" {block_size}: give a {flag} under {shorter_than:g}"
        )


def lines_of(path: Path) -> Iterator[bytes]:
    """Of a file, plain or gzip. Raises ConfigError if it cannot be read."""
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else path.open("rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _told_size(longer_than: float, shorter_than: float) -> int:
    """The size between these, as sizes are: a power of two if there is one."""
    power: int = 2 ** (math.floor(math.log2(longer_than)) + 1)
    return power if power < shorter_than else math.floor(longer_than) + 1
