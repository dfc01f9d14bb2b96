"""One schedule under several arms: paired differences, and how far they can be trusted."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from radixgate.analysis import latency
from radixgate.analysis.balance import fleet_balance
from radixgate.analysis.bootstrap import by_blocks
from radixgate.analysis.cache_bound import cache_use
from radixgate.analysis.intervals import Interval, paired
from radixgate.analysis.percentiles import percentile, values_needed
from radixgate.analysis.records import ABANDONED, RequestRecord
from radixgate.analysis.run_span import run_span_s
from radixgate.analysis.slo import LatencyBounds

Records = Sequence[RequestRecord]
OfRequest = Callable[[RequestRecord], float | None]


@dataclass(frozen=True, slots=True)
class RunMetric:
    """A figure of one run."""

    name: str
    unit: str
    better: int  # -1: less is better; 1: more is
    of_run: Callable[[Records], float | None]
    of_request: OfRequest | None = None  # where the figure is the mean of it


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of an arm against the baseline's. None: not measured in every run."""

    metric: str
    unit: str
    baseline: float | None  # mean over the runs
    arm: float | None
    difference: float | None  # arm - baseline, mean over the pairs
    relative: float | None
    # None: the interval over pairs holds 0, or there is none, or the runs measured their client.
    better: bool | None
    pairs: Sequence[float]  # one difference a round
    over_pairs: Interval | None  # Student's, over the rounds; None: fewer than two
    within: Interval | None  # block bootstrap over requests; None: no mean of requests


def run_metrics(slo: LatencyBounds | None, *, open_loop: bool) -> list[RunMetric]:
    """What is compared; latencies in ms, from the intended time, of a closed loop from the
    dispatch."""
    if open_loop:
        of, ttft, e2e = "response ", latency.response_ttft_s, latency.response_e2e_s
    else:
        of, ttft, e2e = "", latency.ttft_s, latency.e2e_s
    found = [
        _mean(f"{of}TTFT, mean", ttft),
        _quantile(f"{of}TTFT, P50", ttft, 50),
        _quantile(f"{of}TTFT, P90", ttft, 90),
        _quantile(f"{of}TTFT, P99", ttft, 99),
        _mean(f"{of}E2E, mean", e2e),
        _quantile(f"{of}E2E, P90", e2e, 90),
        _mean("TPOT, mean", latency.tpot_s),
        RunMetric("requests a second", "", 1, _request_rate),
        RunMetric("cached prompt tokens", "%", 1, _cached),
        RunMetric("uncached tokens, busiest worker / mean", "", -1, _imbalance),
        RunMetric("failed", "%", -1, _failed),
    ]
    if slo is not None:
        found.append(RunMetric("objective kept", "%", 1, lambda records: _kept(records, slo)))
    return found


def differences(
    baseline: Sequence[Records],
    arm: Sequence[Records],
    slo: LatencyBounds | None = None,
    *,
    open_loop: bool = True,
) -> list[Difference]:
    """Run by run: the n-th of the one with the n-th of the other. Raises ValueError if uneven."""
    if len(baseline) != len(arm):
        raise ValueError(f"{len(baseline)} and {len(arm)} runs are no pairs")
    return [_difference(metric, baseline, arm) for metric in run_metrics(slo, open_loop=open_loop)]


def _difference(
    metric: RunMetric, baseline: Sequence[Records], arm: Sequence[Records]
) -> Difference:
    ours, theirs = _values(metric, baseline), _values(metric, arm)
    if ours is None or theirs is None:
        return Difference(metric.name, metric.unit, None, None, None, None, None, (), None, None)
    pairs = [b - a for a, b in zip(ours, theirs, strict=True)]
    over_pairs = paired(pairs)
    first, second = math.fsum(ours) / len(ours), math.fsum(theirs) / len(theirs)
    difference = second - first
    sure = over_pairs is not None and (over_pairs.low > 0 or over_pairs.high < 0)
    return Difference(
        metric=metric.name,
        unit=metric.unit,
        baseline=first,
        arm=second,
        difference=difference,
        relative=difference / first if first else None,
        better=difference * metric.better > 0 if sure else None,
        pairs=pairs,
        over_pairs=over_pairs,
        within=_within(metric.of_request, baseline, arm),
    )


def _values(metric: RunMetric, runs: Sequence[Records]) -> list[float] | None:
    values = [metric.of_run(records) for records in runs]
    told = [value for value in values if value is not None]
    return told if told and len(told) == len(values) else None


def _within(
    of_request: OfRequest | None, baseline: Sequence[Records], arm: Sequence[Records]
) -> Interval | None:
    """Of the mean difference of the same request under both, in ms."""
    if of_request is None:
        return None
    ours, theirs = _by_index(of_request, baseline), _by_index(of_request, arm)
    both = sorted(ours.keys() & theirs.keys())
    intervals = by_blocks([[1000.0 * (theirs[index] - ours[index])] for index in both])
    return None if intervals is None else intervals.mean


def _by_index(of_request: OfRequest, runs: Sequence[Records]) -> Mapping[int, float]:
    """The mean over the runs, of requests that have the figure in all of them."""
    found: dict[int, list[float]] = {}
    for records in runs:
        for record in records:
            value = of_request(record) if record.ok else None
            if value is not None:
                found.setdefault(record.index, []).append(value)
    whole = {index: values for index, values in found.items() if len(values) == len(runs)}
    return {index: math.fsum(values) / len(values) for index, values in whole.items()}


def _mean(name: str, of_request: OfRequest) -> RunMetric:
    def of_run(records: Records) -> float | None:
        values = _of_successes(of_request, records)
        return 1000.0 * math.fsum(values) / len(values) if values else None

    return RunMetric(name, "ms", -1, of_run, of_request)


def _quantile(name: str, of_request: OfRequest, q: float) -> RunMetric:
    needed = values_needed(q) if q >= 99 else 1

    def of_run(records: Records) -> float | None:
        values = sorted(_of_successes(of_request, records))
        return 1000.0 * percentile(values, q) if len(values) >= needed else None

    return RunMetric(name, "ms", -1, of_run)


def _of_successes(of_request: OfRequest, records: Records) -> list[float]:
    return [value for r in records if r.ok and (value := of_request(r)) is not None]


def _request_rate(records: Records) -> float | None:
    good = [record for record in records if record.ok]
    if not good:
        return None
    start_s, end_s = run_span_s(records)
    return latency.rate(len(good), end_s - start_s)


def _cached(records: Records) -> float | None:
    share = cache_use(records).cached_share
    return None if share is None else 100.0 * share


def _imbalance(records: Records) -> float | None:
    balance = fleet_balance(records, []).of_uncached_tokens
    return None if balance is None else balance.max_over_mean


def _failed(records: Records) -> float | None:
    sent = [record for record in records if record.failure != ABANDONED]
    return 100.0 * sum(not record.ok for record in sent) / len(sent) if sent else None


def _kept(records: Records, slo: LatencyBounds) -> float | None:
    share = slo.attainment(records, 0.0).share
    return None if share is None else 100.0 * share
