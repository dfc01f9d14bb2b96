"""Whether a run measured the server, its own client, or nothing."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from radixgate.analysis import latency
from radixgate.analysis.percentiles import percentile
from radixgate.analysis.records import RequestRecord

_LAG_S = 0.010
_LAG_OF_TTFT = 0.01
_RATE_OFF = 0.01
_LOOP_LAG_S = 0.005
_CPU_SHARE = 0.80


@dataclass(frozen=True, slots=True)
class ClientHealth:
    """How one process of the client fared while it measured."""

    process: int
    requests: int
    cpu_share: float  # of a core
    loop_lag_p99_s: float  # how late its event loop came to a timer
    loop_lag_max_s: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Valid without reasons; the notes say what could not be judged."""

    valid: bool
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    offered_rate: float | None  # sessions a second as intended; None: no times of their own
    achieved_rate: float | None


def judge(
    records: Sequence[RequestRecord],
    clients: Sequence[ClientHealth],
    *,
    open_loop: bool,
    max_concurrency: int | None,
) -> Verdict:
    """The rules: any success, P99 lag, achieved over offered rate, loop lag and CPU a process."""
    reasons = list(_of_clients(clients))
    if not any(record.ok for record in records):
        reasons.insert(0, f"none of {len(records)} requests succeeded: nothing was measured")
    notes: list[str] = []
    offered = achieved = None
    if open_loop:
        offered, achieved = _rates(records)
        reasons += _of_lag(records, max_concurrency)
        if offered and achieved and not abs(achieved / offered - 1.0) <= _RATE_OFF:
            reasons.append(
                f"sent {achieved:.3f} sessions/s where the schedule wants {offered:.3f} "
                f"(allowed: {_RATE_OFF:.0%} off)"
            )
    else:
        notes.append(
            "no request has a time of its own (closed loop): the load follows the server's speed, "
            "so latencies hide overload; compare policies with --request-rate"
        )
    if not clients:
        notes.append("the client's own load was not recorded")
    return Verdict(not reasons, tuple(reasons), tuple(notes), offered, achieved)


def _of_lag(records: Sequence[RequestRecord], max_concurrency: int | None) -> Iterator[str]:
    if not records:
        return
    p99_s = percentile(sorted(map(latency.schedule_lag_s, records)), 99)
    ttfts = sorted(t for r in records if r.ok and (t := latency.ttft_s(r)) is not None)
    allowed_s = max(_LAG_S, _LAG_OF_TTFT * percentile(ttfts, 50)) if ttfts else _LAG_S
    if p99_s <= allowed_s:
        return
    cause = (
        "the client was too slow: more --processes"
        if max_concurrency is None
        else f"--max-concurrency {max_concurrency} held requests back, which service latency "
        "leaves out and response latency holds"
    )
    yield (
        f"P99 schedule lag {1000 * p99_s:.1f} ms, over {1000 * allowed_s:.1f} ms "
        f"(10 ms, or 1 % of the median TTFT): {cause}"
    )


def _of_clients(clients: Sequence[ClientHealth]) -> Iterator[str]:
    for client in clients:
        if not client.requests:
            continue  # it measured nothing, however it fared in its moment
        if client.loop_lag_p99_s > _LOOP_LAG_S:
            yield (
                f"client process {client.process}: P99 loop lag "
                f"{1000 * client.loop_lag_p99_s:.1f} ms, over {1000 * _LOOP_LAG_S:.0f} ms"
            )
        if client.cpu_share > _CPU_SHARE:
            yield (
                f"client process {client.process}: {client.cpu_share:.0%} of a core, over "
                f"{_CPU_SHARE:.0%}; more --processes"
            )


def _rates(records: Sequence[RequestRecord]) -> tuple[float | None, float | None]:
    """Of first turns: later ones follow the server, whatever the schedule wanted."""
    first: dict[str, RequestRecord] = {}
    for record in records:
        known = first.get(record.session)
        if known is None or record.turn < known.turn:
            first[record.session] = record
    if len(first) < 2:
        return None, None
    return (
        _rate([record.t_intended_s for record in first.values()]),
        _rate([record.t_dispatch_s for record in first.values()]),
    )


def _rate(times_s: Sequence[float]) -> float | None:
    span_s = max(times_s) - min(times_s)
    return (len(times_s) - 1) / span_s if span_s > 0 and math.isfinite(span_s) else None
