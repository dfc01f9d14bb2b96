"""What is recorded of a live experiment, one JSON line a record: all that its report is made of.

Times (`t_s`) are seconds since the experiment began, by a clock that never goes back; only the
declaration names the time of day. No record holds a prompt, a key, a tenant or a session: where
one is needed, its salted bucket stands for it. Standard library and msgspec only, so that a
gateway can write these without the tools that read them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from radixgate.errors import ConfigError

Kind = Literal["switchback", "canary", "shadow", "bucket"]
Setting = str | int | float | bool | None
# ok: a whole answer. failed: an error after dispatch. rejected: turned away before dispatch.
# aborted: the client left, which is no failure of the fleet.
Result = Literal["ok", "failed", "rejected", "aborted"]
# In the order of a switch: a block that ends is `ended` and the next one `holding` (dispatch
# stops), then `drained` or `capped`, `reset` (a new policy on an empty mirror), `began` (dispatch
# goes on, first in the washout), `washed_out`. The first block has no hold; it begins with
# `reset`. After the last block comes `ended` alone.
Moment = Literal["holding", "drained", "capped", "reset", "began", "washed_out", "ended"]


class Line(msgspec.Struct, frozen=True, tag_field="record", omit_defaults=False):
    """Any of the records below; the JSON key `record` tells which."""

    experiment: str  # its name


class Arm(msgspec.Struct, frozen=True):
    """One of the two sides. The first declared, A, is the one that runs without the experiment."""

    name: str
    policy: str
    settings: Mapping[str, Setting] = {}


class Guardrail(msgspec.Struct, frozen=True):
    """What stops the experiment: `metric` of arm B past `limit`."""

    name: str
    metric: str  # one of `metrics.METRICS`
    limit: float  # in the metric's unit; where relative, a multiple of arm A's value
    relative: bool = False
    fewest: int = 100  # requests it needs before it may trip


class Declaration(Line, frozen=True, tag="declaration"):
    """The experiment as it was meant, written once before the first request."""

    kind: Kind
    arms: tuple[Arm, Arm]  # A, B
    began_at: float  # Unix time of t_s = 0
    seed: int  # of the schedule
    block_s: float = 0.0  # length of a block, its hold and washout included; 0: has no blocks
    pairs: int = 0  # of blocks; 0: has no blocks
    washout_s: float = 0.0  # from a block's beginning; what is dispatched in it counts for no arm
    hold_cap_s: float = 0.0  # longest wait for the fleet to drain; 0: there is no hold
    resets_mirror: bool = True  # False only to show what that does
    metrics: tuple[str, ...] = ()  # the first is the primary one; (): the usual ones
    guardrails: tuple[Guardrail, ...] = ()
    share_b: float | None = None  # canary, bucket: the part of the traffic that B is to get
    workers_b: tuple[str, ...] = ()  # canary: the pool of B; (): the arms share the fleet
    salt_id: str | None = None  # names the salt of the buckets without telling it
    slo_ttft_s: float | None = None  # with `slo_tpot_s`, what attainment is of; None: no bound
    slo_tpot_s: float | None = None
    version: int = 1  # of this form


class Block(msgspec.Struct, frozen=True):
    """A span of time that belongs to one arm."""

    index: int  # from 0
    pair: int
    arm: str
    starts_s: float  # as planned, its hold included
    ends_s: float


class Schedule(Line, frozen=True, tag="schedule"):
    """The random order of the arms, drawn and committed before the start."""

    blocks: tuple[Block, ...]
    sha256: str  # of the blocks, see `schedule.digest_of`; told to the operator at the start


class BlockEvent(Line, frozen=True, tag="block"):
    """A step of a block's life. What is not this moment's to tell is 0."""

    block: int
    arm: str
    moment: Moment
    t_s: float
    held: int = 0  # drained, capped: requests that waited
    held_s: float = 0.0  # the seconds they waited, summed: what the switch cost users
    hold_s: float = 0.0  # how long dispatch stood still
    left: int = 0  # capped: requests of the arm before that were still in flight
    forgotten: int = 0  # reset: entries of the mirror that were dropped


class RequestLine(Line, frozen=True, tag="request"):
    """One request, written when it ended. It belongs to the block and arm of its dispatch."""

    # -1: the experiment has no blocks, or this was sent while dispatch was held (as `washout`).
    block: int
    arm: str
    washout: bool
    t_dispatch_s: float  # rejected: when it was turned away
    outcome: Result
    # Latencies are from the dispatch; what waited in a hold has `held_s` besides.
    ttft_s: float | None = None  # None: no token came, or it was not streamed
    e2e_s: float | None = None  # None: no whole answer
    tpot_s: float | None = None  # None: fewer than two tokens, or it was not streamed
    prompt_tokens: int | None = None  # None: not known
    cached_tokens: int | None = None  # None: the worker did not tell
    output_tokens: int | None = None
    predicted_cached_tokens: int | None = None  # by the mirror at dispatch; None: not asked
    worker: str | None = None
    unit: int | None = None  # salted bucket of session or tenant; None: the request named none
    held_s: float = 0.0
    weights: str | None = None  # weights version it ran on; None: not known


class GuardrailTrip(Line, frozen=True, tag="guardrail"):
    """A guardrail was passed, and arm B is no longer sent anything."""

    t_s: float
    block: int  # -1: the experiment has no blocks
    guardrail: str
    metric: str
    value: float
    limit: float  # in the metric's unit
    requests: int  # that the value rests on


class ShadowDecision(Line, frozen=True, tag="shadow"):
    """What B would have done with a request that A placed. B never sends."""

    t_s: float
    chosen_a: str  # worker
    chosen_b: str  # with the mirror of B's own placements
    chosen_b_actual: str | None  # with a mirror of the actual placements; None: not kept
    prompt_tokens: int
    predicted_cached_a: int  # tokens, at the worker chosen
    predicted_cached_b: int
    predicted_cached_b_actual: int | None
    # Uncached tokens in flight, busiest worker over the mean, by each one's own placements;
    # 1: even, 0: nothing in flight.
    imbalance_a: float
    imbalance_b: float
    unit: int | None = None


class ExperimentEnd(Line, frozen=True, tag="end"):
    """The last line. A file without it is of an experiment that still runs, or was cut off."""

    t_s: float
    reason: Literal["finished", "stopped", "guardrail", "failed"]
    detail: str = ""


Record = (
    Declaration
    | Schedule
    | BlockEvent
    | RequestLine
    | GuardrailTrip
    | ShadowDecision
    | ExperimentEnd
)

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Record)


def line_of(record: Record) -> bytes:
    """The record as one line of JSON, its end included; a few microseconds."""
    return _ENCODER.encode(record) + b"\n"


def read_lines(lines: Iterable[bytes], name: str = "lines") -> Iterator[Record]:
    """The records of a file's lines; empty lines are passed over.

    A last line without its end is a write that was cut off, and left out. Raises ConfigError,
    with the line's number, for one that is no record.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _DECODER.decode(line)
        except msgspec.DecodeError as error:
            if not line.endswith(b"\n"):
                return
            raise ConfigError(f"{name}, line {number}: {error}") from error
