"""Traces in Mooncake's form: lengths and block ids a request, no text."""

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from radixgate.loadgen.trace_rows import TraceRow, check_block_size, read_rows

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


def read_trace(path: Path, block_size: int, most: int | None = None) -> list[TracedRequest]:
    """As `read_rows`. Raises ConfigError, too, if the trace has blocks of another size."""
    rows = read_rows(path, most)
    check_block_size(path, rows, block_size, "--block-size")
    return [_request(row, block_size) for row in rows]


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


def _request(row: TraceRow, block_size: int) -> TracedRequest:
    whole = row.input_length // block_size
    last = row.hash_ids[-1] if row.hash_ids else 0
    return TracedRequest(
        at_s=-1.0 if row.at_s is None else row.at_s,
        input_tokens=row.input_length,
        output_tokens=max(1, row.output_length),
        ids=tuple(block + 1 for block in row.hash_ids[:whole]),
        session=row.session_name,
        turn=row.turn,
        think_s=row.think_before_s,
        fingerprint=hash((last, row.input_length)) & 0x7FFF_FFFF_FFFF_FFFF | 1,
    )
