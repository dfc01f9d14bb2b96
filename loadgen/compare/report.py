"""What a comparison found: as text, JSON and HTML, from the folders of its runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from radixgate.analysis import latency
from radixgate.analysis.comparison import Difference, differences
from radixgate.analysis.intervals import Interval
from radixgate.analysis.records import RequestRecord
from radixgate.analysis.validity import Verdict, judge
from radixgate.errors import ConfigError
from radixgate.loadgen.failure_messages import failure_lines
from radixgate.loadgen.reports import html_page
from radixgate.loadgen.reports.plots import Plot, distribution_trace
from radixgate.loadgen.reports.run_folder import Run, read_run

COMPARISON, DIFFERENCES, HTML = "compare.json", "differences.json", "compare.html"
HEAD = ("", "baseline", "arm", "difference", "over rounds", "within runs", "")
NOTE = (
    "Differences are arm minus baseline, paired by round. `over rounds`: 95 % by Student's t over "
    "the rounds, the one that holds what differs from run to run; it takes two rounds, and many "
    "for small effects. `within runs`: 95 % by block bootstrap over the same requests under both, "
    "which leaves that out. "
)
_UNJUDGED = "Nothing is judged better or worse where a run of either arm is INVALID."


@dataclass(frozen=True, slots=True)
class RunOf:
    """One run of an arm."""

    arm: str
    round: int
    folder: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Which runs belong together. The first arm is the baseline."""

    arms: Sequence[str]
    runs: Sequence[RunOf]  # in the order they were made
    state: str  # in which each began
    schedule_hash: str


@dataclass(frozen=True, slots=True)
class _Found:
    comparison: Comparison
    differences: dict[str, list[Difference]]  # by arm
    verdicts: list[tuple[RunOf, Verdict]]


def write_comparison(folder: Path) -> tuple[str, bool]:
    """Write differences.json and compare.html; the text, and whether every run had a success.

    Raises ConfigError for a folder that holds no comparison, or runs of different schedules.
    """
    try:
        comparison = msgspec.json.decode((folder / COMPARISON).read_bytes(), type=Comparison)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{folder / COMPARISON}: {error}") from error
    runs = {run.folder: read_run(folder / run.folder) for run in comparison.runs}
    for name, run in runs.items():
        if run.info.schedule_hash != comparison.schedule_hash:
            raise ConfigError(f"{folder / name} played another schedule")
    found = _found(comparison, runs)
    encoded = msgspec.json.encode(found)
    (folder / DIFFERENCES).write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")
    body = _html(found)
    title = " against ".join(comparison.arms)
    (folder / HTML).write_text(html_page.page(title, body, _plots(found, runs)), encoding="utf-8")
    worked = all(any(record.ok for record in run.records) for run in runs.values())
    return "\n".join(_text(found, runs)), worked


def is_comparison(folder: Path) -> bool:
    return (folder / COMPARISON).is_file()


def rows(found: Sequence[Difference]) -> list[Sequence[str]]:
    """One row a metric."""
    return [
        (
            f"{one.metric}{f' ({one.unit})' if one.unit else ''}",
            _number(one.baseline),
            _number(one.arm),
            _number(one.difference, sign=True)
            + (f" ({one.relative:+.1%})" if one.relative is not None else ""),
            _interval(one.over_pairs),
            _interval(one.within),
            {True: "better", False: "WORSE", None: ""}[one.better],
        )
        for one in found
    ]


def _found(comparison: Comparison, runs: dict[str, Run]) -> _Found:
    def records_of(arm: str) -> list[Sequence[RequestRecord]]:
        ordered = sorted((r for r in comparison.runs if r.arm == arm), key=lambda r: r.round)
        return [runs[run.folder].records for run in ordered]

    verdicts = [(run, _verdict(runs[run.folder])) for run in comparison.runs]
    invalid = {run.arm for run, verdict in verdicts if not verdict.valid}

    def compared(arm: str) -> list[Difference]:
        found = differences(records_of(baseline), records_of(arm), slo, open_loop=bench.open_loop)
        if invalid.isdisjoint((baseline, arm)):
            return found
        return [replace(one, better=None) for one in found]

    baseline, *others = comparison.arms
    bench = next(iter(runs.values())).info.bench
    slo = bench.objective
    return _Found(
        comparison,
        {arm: compared(arm) for arm in others},
        verdicts,
    )


def _verdict(run: Run) -> Verdict:
    config = run.info.bench
    return judge(
        run.records,
        run.info.clients,
        open_loop=config.open_loop,
        max_concurrency=config.max_concurrency,
    )


def _text(found: _Found, runs: dict[str, Run]) -> Iterator[str]:
    baseline = found.comparison.arms[0]
    for arm, differences_of_arm in found.differences.items():
        yield f"\n{arm} against {baseline} ({found.comparison.state})"
        yield from _aligned([HEAD, *rows(differences_of_arm)])
    yield ""
    for run, verdict in found.verdicts:
        word = "VALID" if verdict.valid else "INVALID: " + "; ".join(verdict.reasons)
        yield f"round {run.round + 1}, {run.arm}: {word}"
        yield from (f"  {line}" for line in failure_lines(runs[run.folder].records))
    if not all(verdict.valid for _, verdict in found.verdicts):
        yield _UNJUDGED


def _html(found: _Found) -> Iterator[str]:
    comparison = found.comparison
    yield html_page.heading(" against ".join(comparison.arms), 1)
    yield html_page.paragraph(f"{comparison.state}; schedule xxh3_128 {comparison.schedule_hash}")
    yield html_page.paragraph(NOTE + _UNJUDGED, "note")
    for arm, differences_of_arm in found.differences.items():
        yield html_page.heading(f"{arm} against {comparison.arms[0]}")
        yield html_page.table(HEAD, rows(differences_of_arm))
    yield html_page.heading("Runs")
    yield html_page.table(
        ("round", "arm", "folder", "verdict"),
        [
            (
                str(run.round + 1),
                run.arm,
                run.folder,
                "VALID" if verdict.valid else "INVALID: " + "; ".join(verdict.reasons),
            )
            for run, verdict in found.verdicts
        ],
    )


def _plots(found: _Found, runs: dict[str, Run]) -> list[Plot]:
    open_loop = next(iter(runs.values())).info.bench.open_loop
    ttft_s = latency.response_ttft_s if open_loop else latency.ttft_s
    traces: list[dict[str, object]] = []
    for run in found.comparison.runs:
        values = [
            value
            for record in runs[run.folder].records
            if record.ok and (value := ttft_s(record)) is not None
        ]
        if values:
            traces.append(distribution_trace(f"{run.arm}, round {run.round + 1}", values))
    relative = [_relative(arm, found.differences[arm]) for arm in found.differences]
    plots = [
        Plot(
            "Response TTFT" if open_loop else "TTFT",
            "ms",
            "share of requests at or below",
            traces,
            log_x=True,
        ),
        Plot("Differences relative to the baseline", "", "%", relative),
    ]
    return [plot for plot in plots if plot.traces]


def _relative(arm: str, found: Sequence[Difference]) -> dict[str, object]:
    """Bars with the interval over the rounds, where there is one."""
    told = [(one, one.baseline) for one in found if one.relative is not None and one.baseline]
    up, down = [], []
    for one, baseline in told:
        middle = one.difference or 0.0
        interval = one.over_pairs or Interval(middle, middle)
        reach = (interval.high - middle, middle - interval.low)
        up.append(round(100 * abs(reach[0] / baseline), 3))
        down.append(round(100 * abs(reach[1] / baseline), 3))
    return {
        "type": "bar",
        "name": arm,
        "x": [one.metric for one, _ in told],
        "y": [round(100 * (one.relative or 0.0), 3) for one, _ in told],
        "error_y": {"type": "data", "symmetric": False, "array": up, "arrayminus": down},
    }


def _aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    for line in lines:
        rest = [f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)][1:]
        yield "  ".join([f"{line[0]:<{widths[0]}}", *rest]).rstrip()


def _number(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.2f}" if sign else f"{value:.2f}"


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"[{interval.low:.2f}, {interval.high:.2f}]"
