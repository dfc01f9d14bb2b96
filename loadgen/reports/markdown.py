"""The report of a run as Markdown."""

from collections.abc import Iterable, Iterator, Sequence

from radixgate.analysis.balance import Balance
from radixgate.analysis.figures import PERCENTILES, Figure, Quantile
from radixgate.analysis.intervals import Interval
from radixgate.loadgen.reports.run_folder import RunInfo
from radixgate.loadgen.reports.whole_summary import WholeSummary

ABSENT = "-"
HOW_TO_READ = (
    "Latencies are of successes only, over the whole run. Response figures count from the intended "
    "time, service figures (TTFT, E2E) from the dispatch; a closed loop, whose requests have no "
    "time of their own, has only the latter. Brackets are 95 % intervals by block "
    "bootstrap (30 blocks of consecutive requests or more); under 30 requests there are none. "
    "P99 takes 1,000 measurements and P99.9 takes 10,000, else it is not shown."
)


def markdown(info: RunInfo, summary: WholeSummary) -> str:
    """The whole page."""
    return "\n".join(_page(info, summary)) + "\n"


def _page(info: RunInfo, summary: WholeSummary) -> Iterator[str]:
    config = info.bench
    yield f"# {config.dataset_name} on {config.backend}: {verdict_word(summary)}\n"
    for reason in summary.verdict.reasons:
        yield f"- INVALID: {reason}"
    for note in summary.verdict.notes:
        yield f"- note: {note}"
    yield ""
    yield from table(("", "value"), overview(info, summary))
    yield "\n## Latency\n"
    yield HOW_TO_READ + "\n"
    head = ("ms", "n", "mean", *(f"P{q:g}" for q in PERCENTILES), "max")
    yield from table(head, [figure_row(figure) for figure in summary.figures])
    yield ""
    yield from (f"- {figure.name} = {figure.formula}" for figure in summary.figures)
    if summary.completed < summary.offered:
        yield "\nWith every failure counted as an answer that never comes:\n"
        names = [f"p{q:g}" for q in PERCENTILES]
        yield from table(
            ("ms", "n", "failed", *names),
            [
                (
                    adjusted.name,
                    str(adjusted.n),
                    str(adjusted.failed),
                    *(
                        _never(adjusted.quantiles[name]) if name in adjusted.quantiles else ABSENT
                        for name in names
                    ),
                )
                for adjusted in summary.adjusted
            ],
        )
    yield "\n## Workers\n"
    yield from _workers(summary)
    yield "\n## How it was made\n"
    yield from table(("", ""), made(info))


def verdict_word(summary: WholeSummary) -> str:
    return "VALID" if summary.verdict.valid else "INVALID"


def overview(info: RunInfo, summary: WholeSummary) -> Iterator[tuple[str, str]]:
    """Rows of a name and a value, the same in Markdown and HTML."""
    classic, verdict = summary.classic, summary.verdict
    yield "requests", f"{summary.completed} of {summary.offered} succeeded"
    if summary.abandoned:
        yield "given up by the client", f"{summary.abandoned}, not counted as offered"
    for failure, count in summary.failures.items():
        yield f"failed: {failure}", str(count)
    yield "duration", f"{classic.duration_s:.3f} s"
    yield (
        "whole run",
        f"{classic.request_rate:.3f} req/s, {classic.input_token_rate:.1f} input and "
        f"{classic.output_token_rate:.1f} output tokens/s, {classic.concurrency:.2f} in flight",
    )
    steady = summary.steady
    if steady is not None:
        held = "holds" if steady.steady else "does NOT hold: the window is not steady"
        yield (
            f"steady window {steady.start_s:.2f} to {steady.end_s:.2f} s",
            f"{steady.request_rate:.3f} req/s, {steady.output_token_rate:.1f} output tokens/s, "
            f"{steady.in_flight:.2f} in flight; {steady.rule}",
        )
        yield "Little's law in it", f"{held} ({steady.little_error:+.2%}, allowed 2 %)"
    if verdict.offered_rate is not None and verdict.achieved_rate is not None:
        yield (
            "sessions begun",
            f"{verdict.achieved_rate:.3f}/s, intended {verdict.offered_rate:.3f}/s",
        )
    if summary.attainment is not None:
        kept = summary.attainment
        bounds = " ".join(f"{name} {bound:g} ms" for name, bound in kept.slo.items())
        share = ABSENT if kept.share is None else f"{kept.share:.2%}"
        yield "objective", bounds
        yield (
            "kept by",
            f"{kept.good} of {kept.offered} offered: {share} "
            f"[{kept.interval.low:.2%}, {kept.interval.high:.2%}] (Wilson)",
        )
        yield "goodput", f"{kept.goodput:.3f} good req/s"
    cache = summary.cache
    yield "cached prompt tokens", _share(cache.cached_share)
    yield "with one cache without end", _share(cache.bound_share)
    yield "the one over the other", _share(cache.efficiency)


def figure_row(figure: Figure) -> Sequence[str]:
    """One row of the latency table, in ms."""
    return (
        figure.name,
        str(figure.n),
        ABSENT if figure.mean_s is None else _ms(figure.mean_s, figure.mean_interval),
        *(_quantile(quantile) for quantile in figure.quantiles),
        ABSENT if figure.max_s is None else _ms(figure.max_s, None),
    )


def figure_rows(figures: Sequence[Figure]) -> list[Sequence[str]]:
    """The latency table with its head, without the far tail, for a terminal."""
    head = ("ms", "n", "mean", *(f"P{q:g}" for q in PERCENTILES), "max")
    keep = [0, 1, 2, 3, 4, 6]
    return [[row[place] for place in keep] for row in (head, *map(figure_row, figures))]


def made(info: RunInfo) -> Iterator[tuple[str, str]]:
    """How the run was made, as rows."""
    config, machine = info.bench, info.machine
    yield "started", info.started_at
    yield "schedule", f"xxh3_128 {info.schedule_hash}, seed {config.seed}"
    yield "server", f"{config.url}, model {config.model or 'its own'}"
    yield "arrivals", f"{config.arrives}, {config.request_rate:g} sessions/s"
    yield "requests in flight at most", str(config.max_concurrency or "not set")
    for client in info.clients:
        yield (
            f"client process {client.process}",
            f"{client.requests} requests, {client.cpu_share:.0%} of a core, loop lag P99 "
            f"{1000 * client.loop_lag_p99_s:.2f} ms, max {1000 * client.loop_lag_max_s:.1f} ms",
        )
    yield "machine", f"{machine.get('system')}, {machine.get('cores')} cores"
    yield "radixgate", f"{machine.get('radixgate')} at {machine.get('commit') or 'no commit'}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table, a line an entry."""
    return [_line(head), _line(["---"] * len(head)), *(_line(row) for row in rows)]


def worker_rows(summary: WholeSummary) -> list[Sequence[str]]:
    """Each worker's share of the run."""
    fleet = summary.fleet
    return [
        (
            worker,
            str(requests),
            str(fleet.uncached_tokens.get(worker, ABSENT)),
            f"{fleet.mean_in_flight[worker]:.2f}" if worker in fleet.mean_in_flight else ABSENT,
        )
        for worker, requests in fleet.requests.items()
    ]


def balance_rows(summary: WholeSummary) -> list[Sequence[str]]:
    """How even the shares are."""
    fleet = summary.fleet
    return [
        _balance("requests", fleet.of_requests),
        _balance("uncached prompt tokens", fleet.of_uncached_tokens),
        _balance(f"requests in flight, averaged over {fleet.polls} polls", fleet.over_time),
    ]


WORKER_HEAD = ("worker", "requests", "uncached prompt tokens", "in flight on average")
BALANCE_HEAD = ("of", "max / mean", "std / mean", "Jain's index")


def _workers(summary: WholeSummary) -> Iterator[str]:
    if not summary.fleet.requests:
        yield "The server does not tell which worker answered."
        return
    yield from table(WORKER_HEAD, worker_rows(summary))
    yield ""
    yield from table(BALANCE_HEAD, balance_rows(summary))


def _balance(name: str, balance: Balance | None) -> Sequence[str]:
    if balance is None:
        return (name, ABSENT, ABSENT, ABSENT)
    return (
        name,
        f"{balance.max_over_mean:.3f}",
        f"{balance.variation:.3f}",
        f"{balance.jain:.3f}",
    )


def _quantile(quantile: Quantile) -> str:
    if quantile.value_s is None:
        return f"n < {quantile.needed:,}"
    return _ms(quantile.value_s, quantile.interval)


def _ms(value_s: float, interval: Interval | None) -> str:
    shown = f"{1000 * value_s:.2f}"
    if interval is None:
        return shown
    return f"{shown} [{1000 * interval.low:.2f}, {1000 * interval.high:.2f}]"


def _never(value_s: float | None) -> str:
    return "never" if value_s is None else f"{1000 * value_s:.2f}"


def _share(value: float | None) -> str:
    return "not told" if value is None else f"{value:.2%}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
