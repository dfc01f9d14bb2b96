"""The plots of a run as plotly's own JSON: traces and layout, no library needed to make them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from radixgate.analysis import latency
from radixgate.analysis.records import RequestRecord
from radixgate.analysis.run_span import run_span_s
from radixgate.analysis.window import in_flight_over
from radixgate.loadgen.reports.run_folder import Run

_STEPS = 500  # points of a distribution; more would not be seen
_BUCKETS = 120
_DIGITS = 5

_INTENDED, _DISPATCHED = "from the intended time", "from the dispatch"

Traces = list[dict[str, object]]
_Figures = dict[str, Callable[[RequestRecord], float | None]]


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot."""

    title: str
    x: str
    y: str
    traces: Traces
    log_x: bool = False

    def layout(self) -> dict[str, object]:
        """What plotly calls a layout."""
        axis: dict[str, object] = {"title": {"text": self.x}}
        return {
            "title": {"text": self.title},
            "xaxis": axis | ({"type": "log"} if self.log_x else {}),
            "yaxis": {"title": {"text": self.y}, "rangemode": "tozero"},
            "margin": {"l": 60, "r": 20, "t": 45, "b": 50},
            "legend": {"orientation": "h", "y": -0.25},
            "height": 380,
        }


def plots_of(run: Run) -> list[Plot]:
    """Those that have something to show."""
    good = [record for record in run.records if record.ok]
    if not good:
        return []
    open_loop = run.info.bench.open_loop
    ttft: _Figures = {_DISPATCHED: latency.ttft_s}
    e2e: _Figures = {_DISPATCHED: latency.e2e_s}
    if open_loop:
        ttft = {_INTENDED: latency.response_ttft_s, **ttft}
        e2e = {_INTENDED: latency.response_e2e_s, **e2e}
    found = [
        _distribution("Time to first token", good, ttft),
        _distribution("End to end", good, e2e),
        _over_time(run.records, open_loop=open_loop),
        _in_flight(run.records),
        *_workers(run),
    ]
    return [plot for plot in found if plot.traces]


def distribution_trace(name: str, values_s: Sequence[float]) -> dict[str, object]:
    """Share of the values at or below x, in ms."""
    ordered = sorted(values_s)
    n = len(ordered)
    places = sorted({round(step * (n - 1) / (_STEPS - 1)) for step in range(_STEPS)})
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [_short(1000 * ordered[place]) for place in places],
        "y": [_short((place + 1) / n) for place in places],
    }


def _distribution(
    title: str,
    good: Sequence[RequestRecord],
    figures: _Figures,
) -> Plot:
    traces: Traces = []
    for name, figure in figures.items():
        values = [value for record in good if (value := figure(record)) is not None]
        if values:
            traces.append(distribution_trace(name, values))
    return Plot(title, "ms", "share of requests at or below", traces, log_x=True)


def _over_time(records: Sequence[RequestRecord], *, open_loop: bool) -> Plot:
    """Each request's first token by its intended time, of a closed loop by its dispatch, and
    failures on the axis."""
    due = [(r, r.t_eligible_s if open_loop else r.t_dispatch_s) for r in records]
    told = [(at_s, t - at_s) for r, at_s in due if r.ok and (t := _first_token_s(r)) is not None]
    failed = [at_s for r, at_s in due if not r.ok]
    every = -(-len(told) // 5000) or 1
    traces: Traces = []
    if told:
        shown = "TTFT" if every == 1 else f"TTFT, one in {every}"
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "marker": {"size": 4, "opacity": 0.6},
                "name": shown,
                "x": [_short(at_s) for at_s, _ in told[::every]],
                "y": [_short(1000 * ttft_s) for _, ttft_s in told[::every]],
            }
        )
    if failed:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "marker": {"symbol": "x", "color": "crimson"},
                "name": "failed",
                "x": [_short(at_s) for at_s in failed],
                "y": [0] * len(failed),
            }
        )
    if open_loop:
        return Plot("Response TTFT over the run", "intended time, s", "ms", traces)
    return Plot("TTFT over the run", "time of the dispatch, s", "ms", traces)


def _first_token_s(record: RequestRecord) -> float | None:
    return record.arrivals[0].at_s if record.arrivals else None


def _in_flight(records: Sequence[RequestRecord]) -> Plot:
    """Of successes, over the whole run: also where nothing succeeded any more."""
    good = [record for record in records if record.ok]
    start_s, end_s = run_span_s(records)
    if not end_s > start_s:
        return Plot("", "", "", [])
    width_s = (end_s - start_s) / _BUCKETS
    tokens = [0] * _BUCKETS
    for record in good:
        for arrival in record.arrivals:
            place = int((arrival.at_s - start_s) / width_s)
            tokens[min(_BUCKETS - 1, max(0, place))] += arrival.tokens
    middles = [_short(start_s + (place + 0.5) * width_s) for place in range(_BUCKETS)]
    flying = in_flight_over(good, start_s, end_s, _BUCKETS)
    return Plot(
        "Requests in flight and output tokens per 10 ms",
        "s",
        "",
        [
            _line("in flight", middles, [_short(value) for value in flying]),
            _line("tokens / 10 ms", middles, [_short(0.01 * count / width_s) for count in tokens]),
        ],
    )


def _workers(run: Run) -> list[Plot]:
    names = sorted({worker for poll in run.polls for worker in poll.in_flight})
    if not names:
        return []
    times = [_short(poll.at_s) for poll in run.polls]
    traces = [
        _line(name, times, [float(poll.in_flight.get(name, 0)) for poll in run.polls])
        for name in names
    ]
    return [Plot("Requests in flight by worker", "s", "requests", traces)]


def _line(name: str, x: Sequence[float], y: Sequence[float]) -> dict[str, object]:
    return {"type": "scatter", "mode": "lines", "name": name, "x": list(x), "y": list(y)}


def _short(value: float) -> float:
    """Enough digits for a plot; a report is sent around."""
    return float(f"{value:.{_DIGITS}g}")
