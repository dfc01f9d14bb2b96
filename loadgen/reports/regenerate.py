"""The reports of a run, from what its folder recorded: the same bytes each time."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from radixgate.analysis.figures import PERCENTILES
from radixgate.loadgen.reports import html_page, markdown
from radixgate.loadgen.reports.plots import plots_of
from radixgate.loadgen.reports.run_folder import Run, RunInfo, read_run
from radixgate.loadgen.reports.whole_summary import WholeSummary, whole_summary
from radixgate.loadgen.result_line import result_of

SUMMARY, PAGE, HTML = "summary.json", "summary.md", "report.html"


def write_reports(folder: Path) -> tuple[Run, WholeSummary]:
    """summary.json, summary.md and report.html, from the other files of the folder alone.

    Raises ConfigError for a folder that holds no run.
    """
    run = read_run(folder)
    summary = whole_summary(run)
    flat = result_of(run.info.bench, summary.classic, run.info.schedule_hash)
    encoded = msgspec.json.encode(flat | {"whole": summary})
    (folder / SUMMARY).write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")
    (folder / PAGE).write_text(markdown.markdown(run.info, summary), encoding="utf-8")
    body = _body(run.info, summary)
    title = f"{run.info.bench.dataset_name} on {run.info.bench.backend}"
    (folder / HTML).write_text(html_page.page(title, body, plots_of(run)), encoding="utf-8")
    return run, summary


def overview_text(info: RunInfo, summary: WholeSummary) -> str:
    """What SGLang's table has no row for, and the latencies with their intervals."""
    rows = [f"{name}: {value}" for name, value in markdown.overview(info, summary)]
    shown = [row for row in markdown.figure_rows(summary.figures) if row[1] != "0"]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)] if shown else []
    for row in shown:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        rows.append("  ".join(cells).rstrip())
    return "\n".join(rows)


def verdict_line(summary: WholeSummary) -> str:
    """VALID, or INVALID with every reason."""
    word = markdown.verdict_word(summary)
    return "\n".join([word, *(f"  - {reason}" for reason in summary.verdict.reasons)])


def _body(info: RunInfo, summary: WholeSummary) -> Iterator[str]:
    yield html_page.heading(f"{info.bench.dataset_name} on {info.bench.backend}", 1)
    valid = summary.verdict.valid
    yield html_page.paragraph(markdown.verdict_word(summary), "good" if valid else "bad")
    for reason in summary.verdict.reasons:
        yield html_page.paragraph(reason, "bad")
    for note in summary.verdict.notes:
        yield html_page.paragraph(note, "note")
    yield html_page.table(("", ""), markdown.overview(info, summary))
    yield html_page.heading("Latency")
    yield html_page.paragraph(markdown.HOW_TO_READ, "note")
    head = ("ms", "n", "mean", *(f"P{q:g}" for q in PERCENTILES), "max")
    yield html_page.table(head, map(markdown.figure_row, summary.figures))
    yield html_page.table(("", "formula"), [(f.name, f.formula) for f in summary.figures])
    if summary.fleet.requests:
        yield html_page.heading("Workers")
        yield html_page.table(markdown.WORKER_HEAD, markdown.worker_rows(summary))
        yield html_page.table(markdown.BALANCE_HEAD, markdown.balance_rows(summary))
    yield html_page.heading("How it was made")
    yield html_page.table(("", ""), markdown.made(info))
