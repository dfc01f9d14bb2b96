"""The decision log as it stands on disk: one JSON object a line, of three kinds.

It holds no prompt and no key. A prompt is its chain of block ids, base64 of 8 little-endian bytes
each; a session is a digest whose key is kept nowhere.
"""

import base64
import sys
from array import array
from collections.abc import Sequence

import msgspec

VERSION = 1


class StartLine(msgspec.Struct, frozen=True, tag_field="kind", tag="start"):
    """By what is decided from here on: first in each file, and again when the policy changes."""

    version: int
    run: str  # of one process; numbers of decisions begin anew with each
    at: float  # seconds since the epoch
    policy: str
    settings: dict[str, dict[str, object]]  # of every policy, by section
    # The policy began here, with a random source of this seed; None: it is that of the lines
    # before, which may stand in an older file.
    seed: int | None = None


class Columns(msgspec.Struct, frozen=True):
    """The workers that could be chosen, in the policy's order: what each held, and its load."""

    worker: list[str]
    cached_tokens: list[int]
    recent_share: list[float]  # of the recent prompts, those that begin with what it has cached
    requests_in_flight: list[int]
    uncached_tokens_in_flight: list[int]
    running: list[int | None]  # null: it has not reported, or too long ago
    waiting: list[int | None]
    queued_uncached_tokens: list[int | None]
    queued_elsewhere: list[int | None]
    kv_share_used: list[float | None]
    prefill_tokens_per_s: list[float | None]
    decode_step_s: list[float | None]
    score: list[float]  # the policy's, lower is better


class DecisionLine(msgspec.Struct, frozen=True, tag_field="kind", tag="decision"):
    """One attempt of a request got its worker."""

    run: str
    n: int  # counted from 1, without a gap unless lines were dropped
    at: float
    policy: str
    model: str
    prompt_tokens: int
    session: str | None
    group: str | None
    tenant: str | None
    priority: int
    fingerprint: int
    blocks: str
    candidates: Columns
    chosen: str
    reason: str
    predicted_ttft_s: float
    block_tokens: int = 0  # of each of the first blocks; 0: the line is of a log that told none


class OutcomeLine(msgspec.Struct, frozen=True, tag_field="kind", tag="outcome"):
    """How that attempt ended. Times run from the decision; null: it never came to that."""

    run: str
    n: int
    outcome: str  # ok, failed, aborted, refused
    cached_tokens: int | None  # as the worker told
    ttft_s: float | None  # to the first output; of an answer that is not streamed, to its end
    e2e_s: float


Line = StartLine | DecisionLine | OutcomeLine

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


def encode_line(line: Line) -> bytes:
    """With its line end."""
    return _encode(line) + b"\n"


def decode_line(data: bytes) -> Line:
    """Raises msgspec.MsgspecError for anything else."""
    return _decode(data)


def packed(ids: Sequence[int]) -> str:
    """Block ids as one short word."""
    words = array("Q", ids)
    if sys.byteorder == "big":
        words.byteswap()
    return base64.b64encode(words.tobytes()).decode("ascii")


def unpacked(word: str) -> "array[int]":
    """Raises ValueError if it is none."""
    words = array("Q")
    words.frombytes(base64.b64decode(word, validate=True))
    if sys.byteorder == "big":
        words.byteswap()
    return words
