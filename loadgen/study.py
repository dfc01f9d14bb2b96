"""A bench at several rates: a sweep, and the search for the highest that keeps an objective."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from radixgate.analysis.figures import Figure
from radixgate.analysis.goodput_search import GoodputSearch, Probe
from radixgate.errors import ConfigError
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.output_places import writing
from radixgate.loadgen.reports.whole_summary import WholeSummary
from radixgate.loadgen.study_config import StudyConfig

Measured = Callable[[BenchConfig], WholeSummary]

_HEAD = ("rate", "sent/s", "good/s", "attained", "TTFT P50", "TTFT P99", "E2E P50", "in flight", "")


def run_sweep(config: BenchConfig, study: StudyConfig, measured: Measured) -> int:
    """Measure each rate, then show them side by side; times in ms, from the intended time."""
    rows = []
    for number, rate in enumerate(study.sweep):
        summary = measured(at_rate(config, rate, number))
        rows.append(_row(rate, summary))
    print("\n".join(_table([_HEAD, *rows])), flush=True)
    return 0


def run_search(config: BenchConfig, study: StudyConfig, measured: Measured) -> int:
    """Search; the exit code is 1 if not even the first rate keeps the objective.

    Raises ConfigError without an objective.
    """
    if not config.goodput:
        raise ConfigError("--find-goodput needs --goodput, for instance --goodput ttft:500 tpot:50")
    search = GoodputSearch(
        study.search_from,
        study.search_to,
        target=study.search_attainment,
        precision=study.search_precision,
        repeats=study.search_repeats,
    )
    probes: dict[float, Probe] = {}
    rows: list[tuple[str, ...]] = []
    while (rate := search.next_rate()) is not None:
        summary = measured(at_rate(config, rate, len(rows)))
        kept = summary.attainment
        assert kept is not None
        probes[rate] = search.note(kept.good, kept.offered)
        rows.append(_row(rate, summary))
    print("\n".join(_table([_HEAD, *rows])))
    print("\n".join(_outcome(search, study, probes)), flush=True)
    if config.output_folder is not None:
        _write(Path(config.output_folder) / "goodput.json", search, probes)
    return 1 if search.holds is None else 0


def at_rate(config: BenchConfig, rate: float, number: int) -> BenchConfig:
    """One run of a study: prompts of its own unless the caches are flushed before it."""
    folder = config.output_folder
    return replace(
        config,
        request_rate=rate,
        seed=config.seed if config.flush_cache else config.seed + number,
        output_folder=None if folder is None else f"{folder}/{number:02}-rate-{rate:g}",
        tag=f"{config.tag or 'rate'} {rate:g}",
    )


def _outcome(
    search: GoodputSearch, study: StudyConfig, probes: dict[float, Probe]
) -> Iterator[str]:
    target = f"{study.search_attainment:.1%} of the offered requests good"
    if search.holds is None:
        yield f"even {study.search_from:g} sessions/s does not keep {target}"
        return
    probe = probes[search.holds]
    sure = "" if probe.certain else "; its interval holds the target, the share decided"
    yield (
        f"highest rate with {target}: {search.holds:g} sessions/s, "
        f"{probe.good} of {probe.offered} "
        f"[{probe.interval.low:.2%}, {probe.interval.high:.2%}] (Wilson{sure})"
    )
    if search.fails is None:
        yield f"no rate up to {study.search_to:g} failed: give a higher --search-to"
    else:
        yield f"lowest rate that failed: {search.fails:g} sessions/s"


def _write(path: Path, search: GoodputSearch, probes: dict[float, Probe]) -> None:
    found = {"holds": search.holds, "fails": search.fails, "probes": list(probes.values())}
    with writing("--output-folder", path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def _row(rate: float, summary: WholeSummary) -> tuple[str, ...]:
    figures = {figure.name: figure for figure in summary.figures}
    ttft = figures.get("response TTFT", figures["TTFT"])
    kept = summary.attainment
    achieved = summary.verdict.achieved_rate
    return (
        f"{rate:g}",
        "-" if achieved is None else f"{achieved:.2f}",
        "-" if kept is None else f"{kept.goodput:.2f}",
        "-" if kept is None or kept.share is None else f"{kept.share:.1%}",
        _ms(ttft, 50.0),
        _ms(ttft, 99.0),
        _ms(figures.get("response E2E", figures["E2E"]), 50.0),
        f"{summary.classic.concurrency:.1f}",
        "valid" if summary.verdict.valid else "INVALID",
    )


def _ms(figure: Figure, q: float) -> str:
    (found,) = [quantile for quantile in figure.quantiles if quantile.q == q]
    if found.value_s is None or figure.n == 0:
        return f"n<{found.needed}"
    return f"{1000 * found.value_s:.0f}"


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
