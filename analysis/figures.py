"""A latency figure as it may be printed: with its formula, its n, and how far it can be trusted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from radixgate.analysis import latency
from radixgate.analysis.bootstrap import by_blocks
from radixgate.analysis.intervals import Interval
from radixgate.analysis.percentiles import percentile, values_needed
from radixgate.analysis.records import ABANDONED, RequestRecord

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)

Values = Callable[[RequestRecord], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Quantile:
    """One percentile. Either the value or the number of measurements it would take."""

    q: float
    value_s: float | None  # None: refused, n is below `needed`
    interval: Interval | None  # None: fewer than 30 requests
    needed: int


@dataclass(frozen=True, slots=True)
class Figure:
    """One kind of latency over the successes of a run, in seconds."""

    name: str
    formula: str
    n: int
    mean_s: float | None  # None: nothing was measured
    mean_interval: Interval | None
    max_s: float | None
    quantiles: tuple[Quantile, ...]


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Percentiles over all that was offered, a failure counting as never answered."""

    name: str
    n: int
    failed: int
    quantiles: Mapping[str, float | None]  # by "p50"; None: never


FORMULAS: Mapping[str, tuple[str, Values]] = {
    "response TTFT": (
        "t(first arrival) - t(intended or, for a later turn, eligible)",
        lambda record: _some(latency.response_ttft_s(record)),
    ),
    "response E2E": (
        "t(last token) - t(intended or, for a later turn, eligible)",
        lambda record: [latency.response_e2e_s(record)],
    ),
    "TTFT": (
        "t(first arrival) - t(dispatch)",
        lambda record: _some(latency.ttft_s(record)),
    ),
    "E2E": (
        "t(last token) - t(dispatch)",
        lambda record: [latency.e2e_s(record)],
    ),
    "TPOT": (
        "(t(last arrival) - t(first arrival)) / (output tokens - 1), one value a request",
        lambda record: _some(latency.tpot_s(record)),
    ),
    "ITL by token": (
        "gap before an arrival / its tokens, one value for each token after the first",
        latency.itl_tokens_s,
    ),
    "ITL by gap": (
        "t(arrival k+1) - t(arrival k), however many tokens came, one value a gap",
        latency.itl_gaps_s,
    ),
}
# What an open loop's requests are late for. One of a closed loop has no time of its own: it is due
# as soon as there is room for it, and counted from the beginning of the run it would tell of that.
RESPONSE = ("response TTFT", "response E2E")
_SERVICE = ("TTFT", "E2E")
LAG_FORMULA = "t(dispatch) - t(intended or eligible), failures included"


def figures_of(records: Sequence[RequestRecord], *, open_loop: bool = True) -> tuple[Figure, ...]:
    """Every figure over the successes; of a closed loop those from the dispatch on. Abandoned
    requests have no lag that would mean something."""
    good = in_order_of_dispatch(record for record in records if record.ok)
    figures = [
        figure_of(name, formula, [values(record) for record in good])
        for name, (formula, values) in FORMULAS.items()
        if open_loop or name not in RESPONSE
    ]
    if not open_loop:
        return tuple(figures)
    sent = in_order_of_dispatch(record for record in records if record.failure != ABANDONED)
    lags = [[latency.schedule_lag_s(record)] for record in sent]
    return (*figures, figure_of("schedule lag", LAG_FORMULA, lags))


def figure_of(name: str, formula: str, groups: Sequence[Sequence[float]]) -> Figure:
    """Over groups of values, one group a request. Costs 200 passes over the values."""
    ordered = sorted(value for group in groups for value in group)
    n = len(ordered)
    allowed = [q for q in PERCENTILES if n >= _needed(q)]
    intervals = by_blocks(groups, allowed)
    found = {} if intervals is None else intervals.percentiles
    return Figure(
        name=name,
        formula=formula,
        n=n,
        mean_s=sum(ordered) / n if n else None,
        mean_interval=None if intervals is None else intervals.mean,
        max_s=ordered[-1] if n else None,
        quantiles=tuple(
            Quantile(q, percentile(ordered, q) if q in allowed else None, found.get(q), _needed(q))
            for q in PERCENTILES
        ),
    )


def adjusted_of(
    records: Sequence[RequestRecord], *, open_loop: bool = True
) -> tuple[Adjusted, ...]:
    """Response latencies, of a closed loop service latencies, in which failing fast is no way to
    look good."""
    offered = [record for record in records if record.failure != ABANDONED]
    return tuple(
        _adjusted(name, [FORMULAS[name][1](record) if record.ok else [] for record in offered])
        for name in (RESPONSE if open_loop else _SERVICE)
    )


def in_order_of_dispatch(records: Iterable[RequestRecord]) -> list[RequestRecord]:
    """So that blocks of neighbours are neighbours in time."""
    return sorted(records, key=lambda record: (record.t_dispatch_s, record.index))


def _adjusted(name: str, groups: Sequence[Sequence[float]]) -> Adjusted:
    answered = sorted(value for group in groups for value in group)
    n = len(groups)
    quantiles: dict[str, float | None] = {}
    for q in PERCENTILES:
        if n < _needed(q):
            continue
        place = int((n - 1) * q / 100.0)
        quantiles[f"p{q:g}"] = answered[place] if place < len(answered) else None
    return Adjusted(name, n, n - len(answered), quantiles)


def _needed(q: float) -> int:
    """Only the far tail is refused: a median of a few is modest, a P99 of a few is an outlier."""
    return values_needed(q) if q >= 99.0 else 1


def _some(value: float | None) -> list[float]:
    return [] if value is None else [value]
