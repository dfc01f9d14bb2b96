"""How evenly a fleet was loaded."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from radixgate.analysis.records import RequestRecord


@dataclass(frozen=True, slots=True)
class Balance:
    """Of one amount over the workers; all workers alike is 1, 0 and 1."""

    max_over_mean: float
    variation: float  # standard deviation over mean
    jain: float  # (sum x)^2 / (n * sum x^2): 1 is even, 1/n is one worker for all


@dataclass(frozen=True, slots=True)
class FleetBalance:
    """What each worker did, and how even that was. None: not known."""

    requests: Mapping[str, int]  # successes by worker
    uncached_tokens: Mapping[str, int]  # prompt tokens of those that were computed anew
    of_requests: Balance | None
    of_uncached_tokens: Balance | None
    mean_in_flight: Mapping[str, float]  # requests in flight there, averaged over the polls
    over_time: Balance | None  # of requests in flight at each poll with any, averaged
    polls: int


@dataclass(frozen=True, slots=True)
class FleetPoll:
    """The gateway's workers at one time."""

    at_s: float  # since the run began
    in_flight: Mapping[str, int]  # requests by worker
    tokens_in_flight: Mapping[str, int]
    kv_tokens_used: Mapping[str, int | None]  # None: no report


def balance_of(amounts: Sequence[float]) -> Balance | None:
    """None: no workers, or nothing to share out."""
    total = math.fsum(amounts)
    if not amounts or total <= 0:
        return None
    n = len(amounts)
    mean = total / n
    squares = math.fsum(amount * amount for amount in amounts)
    return Balance(
        max_over_mean=max(amounts) / mean,
        variation=math.sqrt(max(0.0, squares / n - mean * mean)) / mean,
        jain=total * total / (n * squares),
    )


def fleet_balance(records: Sequence[RequestRecord], polls: Sequence[FleetPoll]) -> FleetBalance:
    """A worker that got nothing counts if a poll saw it."""
    names = sorted(
        {worker for poll in polls for worker in poll.in_flight}
        | {record.worker_id for record in records if record.ok and record.worker_id is not None}
    )
    requests = dict.fromkeys(names, 0)
    uncached = dict.fromkeys(names, 0)
    told = False
    for record in records:
        if not record.ok or record.worker_id is None:
            continue
        requests[record.worker_id] += 1
        if record.prompt_tokens is not None and record.cached_tokens is not None:
            told = True
            uncached[record.worker_id] += record.prompt_tokens - record.cached_tokens
    moments = [[float(poll.in_flight.get(name, 0)) for name in names] for poll in polls]
    return FleetBalance(
        requests=requests,
        uncached_tokens=uncached if told else {},
        of_requests=balance_of([float(count) for count in requests.values()]),
        of_uncached_tokens=balance_of([float(count) for count in uncached.values()]),
        mean_in_flight={
            name: math.fsum(column) / len(moments)
            for name, column in zip(names, zip(*moments, strict=True), strict=True)
        }
        if moments
        else {},
        over_time=_averaged([found for moment in moments if (found := balance_of(moment))]),
        polls=len(polls),
    )


def _averaged(moments: Sequence[Balance]) -> Balance | None:
    if not moments:
        return None
    n = len(moments)
    return Balance(
        max_over_mean=math.fsum(moment.max_over_mean for moment in moments) / n,
        variation=math.fsum(moment.variation for moment in moments) / n,
        jain=math.fsum(moment.jain for moment in moments) / n,
    )
