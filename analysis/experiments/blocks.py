"""The blocks of a switchback as they were lived, and the pairs that may be compared."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from radixgate.analysis.experiments.metrics import Metric
from radixgate.analysis.experiments.records import (
    BlockEvent,
    Declaration,
    ExperimentEnd,
    GuardrailTrip,
    Record,
    RequestLine,
    Schedule,
    ShadowDecision,
)
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class LivedBlock:
    """One block with what happened in it."""

    index: int
    pair: int
    arm: str
    starts_s: float  # as planned, its hold included
    began_s: float  # dispatch under its arm; its washout counts from here
    ended_s: float
    requests: Sequence[RequestLine]  # by dispatch, those of the washout included

    def kept(self, washout_s: float) -> list[RequestLine]:
        """Dispatched later than that after its beginning."""
        since_s = self.began_s + washout_s
        return [request for request in self.requests if request.t_dispatch_s >= since_s]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two blocks in a row, one of each arm."""

    number: int
    a: LivedBlock
    b: LivedBlock


@dataclass(frozen=True, slots=True)
class Log:
    """All records of one experiment, by kind, each in the order of its time."""

    declaration: Declaration
    schedule: Schedule | None  # None: the experiment has no blocks
    events: Sequence[BlockEvent]
    requests: Sequence[RequestLine]
    trips: Sequence[GuardrailTrip]
    decisions: Sequence[ShadowDecision]
    end: ExperimentEnd | None  # None: it runs on, or was cut off


def log_of(records: Iterable[Record]) -> Log:
    """Sort the records out. Raises ConfigError if they are of no or of several experiments."""
    declared: list[Declaration] = []
    schedules: list[Schedule] = []
    events: list[BlockEvent] = []
    requests: list[RequestLine] = []
    trips: list[GuardrailTrip] = []
    decisions: list[ShadowDecision] = []
    ends: list[ExperimentEnd] = []
    names: set[str] = set()
    for record in records:
        names.add(record.experiment)
        match record:
            case RequestLine():
                requests.append(record)
            case BlockEvent():
                events.append(record)
            case ShadowDecision():
                decisions.append(record)
            case GuardrailTrip():
                trips.append(record)
            case Declaration():
                declared.append(record)
            case Schedule():
                schedules.append(record)
            case ExperimentEnd():
                ends.append(record)
    if len(declared) != 1 or len(names) != 1:
        raise ConfigError(
            f"these are records of {len(names)} experiments ({', '.join(sorted(names))}) with"
            f" {len(declared)} declarations; a report is of one"
        )
    return Log(
        declaration=declared[0],
        schedule=schedules[0] if schedules else None,
        events=events,
        requests=sorted(requests, key=lambda request: request.t_dispatch_s),
        trips=trips,
        decisions=decisions,
        end=ends[-1] if ends else None,
    )


def lived_blocks(log: Log) -> list[LivedBlock]:
    """Those that began and ended, in order."""
    if log.schedule is None:
        return []
    began: dict[int, float] = {}
    ended: dict[int, float] = {}
    for event in log.events:
        if event.moment == "began":
            began[event.block] = event.t_s
        elif event.moment == "ended":
            ended[event.block] = event.t_s
    requests: dict[int, list[RequestLine]] = defaultdict(list)
    for request in log.requests:
        requests[request.block].append(request)
    return [
        LivedBlock(
            block.index,
            block.pair,
            block.arm,
            block.starts_s,
            began[block.index],
            ended[block.index],
            requests[block.index],
        )
        for block in log.schedule.blocks
        if block.index in began and block.index in ended
    ]


def pairs_of(log: Log) -> tuple[list[Pair], list[str]]:
    """Whole pairs to compare, and why the others are left out.

    A pair is left out if one of its blocks did not run to its end or kept no request, or if a
    worker's weights changed within it.
    """
    a_name = log.declaration.arms[0].name
    by_pair: dict[int, list[LivedBlock]] = defaultdict(list)
    for block in lived_blocks(log):
        by_pair[block.pair].append(block)
    pairs: list[Pair] = []
    dropped: list[str] = []
    planned = {block.pair for block in log.schedule.blocks} if log.schedule else set()
    for number in sorted(planned):
        blocks = by_pair[number]
        if len(blocks) < 2:
            dropped.append(f"pair {number}: not both of its blocks ran to their end")
            continue
        empty = [b for b in blocks if not b.kept(log.declaration.washout_s)]
        mixed = _on_several_weights(blocks, log.declaration.washout_s)
        if empty:
            dropped.append(f"pair {number}: block {empty[0].index} kept no request")
        elif mixed:
            dropped.append(f"pair {number}: {mixed}")
        else:
            first, second = blocks
            a, b = (first, second) if first.arm == a_name else (second, first)
            pairs.append(Pair(number, a, b))
    return pairs, dropped


def outcomes(
    pairs: Sequence[Pair], metric: Metric, washout_s: float
) -> Mapping[int, tuple[float, float]]:
    """By pair the figure of A's block and of B's; pairs where one has none are left out."""
    found = {}
    for pair in pairs:
        a, b = metric.of(pair.a.kept(washout_s)), metric.of(pair.b.kept(washout_s))
        if a is not None and b is not None:
            found[pair.number] = (a, b)
    return found


def _on_several_weights(blocks: Sequence[LivedBlock], washout_s: float) -> str:
    """Which worker did, and on which; empty: none."""
    weights: dict[str, set[str]] = defaultdict(set)
    for block in blocks:
        for request in block.kept(washout_s):
            if request.weights is not None and request.worker is not None:
                weights[request.worker].add(request.weights)
    for worker, versions in sorted(weights.items()):
        if len(versions) > 1:
            return f"worker {worker} ran on weights {', '.join(sorted(versions))}"
    return ""
