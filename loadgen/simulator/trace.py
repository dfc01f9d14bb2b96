"""Traces in Mooncake's form: lengths and block ids a request, no text."""

import gzip
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError

# Timestamps shared by more requests than this on average are the borders of bins.
_BINNED_ABOVE = 2.0


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """One request. `ids` are its prompt's whole blocks, none of them 0; an id names a prefix."""

    at_s: float  # since the trace's start; 0 in a closed loop
    input_tokens: int
    output_tokens: int
    ids: Sequence[int]
    session: str | None = None  # None: the trace names none
    turn: int = 0
    think_s: float = 0.0  # between the answer before and this request
    fingerprint: int = 0  # of the whole prompt, its last part of a block included


class _Row(msgspec.Struct):
    input_length: int
    output_length: int
    hash_ids: list[int]
    timestamp: float | None = None  # milliseconds
    session: str | int | None = None
    turn: int = 0
    think: float | None = None  # seconds; None: the trace does not tell, so none


def read_trace(path: Path, block_size: int, most: int | None = None) -> list[TracedRequest]:
    """The first `most` requests of a file of JSON lines, plain or gzip; None: all of them.

    Raises ConfigError for a file that cannot be read, with the line.
    """
    decode = msgspec.json.Decoder(_Row).decode
    requests: list[TracedRequest] = []
    for number, line in enumerate(_lines(path), 1):
        if most is not None and len(requests) >= most:
            break
        if not line.strip():
            continue
        try:
            row = decode(line)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{path}, line {number}: {error}") from error
        if row.input_length < 1 or row.output_length < 0:
            raise ConfigError(
                f"{path}, line {number}: {row.input_length} prompt tokens and"
                f" {row.output_length} of output are no request"
            )
        requests.append(_request(row, block_size))
    if not requests:
        raise ConfigError(f"{path} holds no requests")
    return requests


def is_closed_loop(requests: Sequence[TracedRequest]) -> bool:
    """The requests have no times of their own, only an order within their sessions."""
    return all(request.session is not None and request.at_s < 0 for request in requests)


def jittered(requests: Sequence[TracedRequest], rng: random.Random) -> list[TracedRequest]:
    """In order of time; where timestamps are borders of bins, spread evenly inside each bin."""
    ordered = sorted(requests, key=lambda request: request.at_s)
    borders = sorted({request.at_s for request in ordered})
    if len(borders) < 2 or len(ordered) / len(borders) <= _BINNED_ABOVE:
        return ordered
    widest = borders[-1] - borders[-2]

    def spread(request: TracedRequest) -> TracedRequest:
        after = bisect_right(borders, request.at_s)
        width = borders[after] - request.at_s if after < len(borders) else widest
        return replace(request, at_s=request.at_s + rng.random() * width)

    return sorted(map(spread, ordered), key=lambda request: request.at_s)


def _request(row: _Row, block_size: int) -> TracedRequest:
    whole = row.input_length // block_size
    last = row.hash_ids[-1] if row.hash_ids else 0
    return TracedRequest(
        at_s=-1.0 if row.timestamp is None else row.timestamp / 1000.0,
        input_tokens=row.input_length,
        output_tokens=max(1, row.output_length),
        ids=tuple(block + 1 for block in row.hash_ids[:whole]),
        session=None if row.session is None else str(row.session),
        turn=row.turn,
        think_s=max(0.0, row.think or 0.0),
        fingerprint=hash((last, row.input_length)) & 0x7FFF_FFFF_FFFF_FFFF | 1,
    )


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else path.open("rb") as file:
            yield from file
    except (OSError, EOFError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
