"""The results as one HTML file: the table, and how the times lie under each policy."""

from collections.abc import Callable, Mapping, Sequence

from radixgate.loadgen.reports import html_page
from radixgate.loadgen.reports.plots import Plot, distribution_trace
from radixgate.loadgen.simulator.results import Results

_HEAD = (
    *("policy", "hit rate", "TTFT p50, s", "p95", "p99", "E2E mean, s", "p95"),
    *("max/mean", "requests/s", "good"),
)


def picture(title: str, results: Mapping[str, Results]) -> str:
    """Self-contained. Raises ConfigError if plotly is not installed."""
    body = [
        html_page.heading("Simulated policies", 1),
        html_page.paragraph(title),
        html_page.table(_HEAD, [_row(name, one) for name, one in results.items()]),
    ]
    plots = [
        _distribution("Time to first token", results, lambda one: one.times.ttft_s),
        _distribution("End to end", results, lambda one: one.times.e2e_s),
    ]
    return html_page.page("radixgate simulate", body, plots)


def _row(name: str, one: Results) -> Sequence[str]:
    return (
        name,
        f"{one.hit_rate:.3f}",
        *(f"{value:.2f}" for value in (one.ttft_s.p50, one.ttft_s.p95, one.ttft_s.p99)),
        f"{one.e2e_s.mean:.2f}",
        f"{one.e2e_s.p95:.2f}",
        f"{one.imbalance:.2f}",
        f"{one.requests_per_s:.2f}",
        "-" if one.goodput is None else f"{100 * one.goodput.share:.1f} %",
    )


def _distribution(
    title: str, results: Mapping[str, Results], times: Callable[[Results], Sequence[float]]
) -> Plot:
    traces = [distribution_trace(name, times(one)) for name, one in results.items()]
    return Plot(title, "ms", "share of requests at or below", traces, log_x=True)
