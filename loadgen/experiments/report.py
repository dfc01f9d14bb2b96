"""`radixgate experiment report`: findings as a table, JSON, Markdown and HTML."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from radixgate.analysis.experiments.blocks import Log, log_of
from radixgate.analysis.experiments.findings import Findings, findings_of
from radixgate.analysis.experiments.records import Record, read_lines
from radixgate.errors import ConfigError
from radixgate.loadgen.experiments import rows
from radixgate.loadgen.experiments.config import ExperimentConfig
from radixgate.loadgen.reports import html_page
from radixgate.loadgen.reports.plots import Plot

JSON, PAGE, HTML = "experiment.json", "experiment.md", "experiment.html"


# What became of an experiment's checks, as its page is coloured.
_CLASSES: Mapping[bool | None, str] = {True: "good", False: "bad", None: ""}


def run_report(config: ExperimentConfig) -> int:
    """Print, and write where that was asked for; 1 if a check of the experiment failed.

    Raises ConfigError for files that cannot be read, or that are not of one experiment.
    """
    log = log_of(_records(config.files))
    findings = _findings(log)
    print(text(findings))
    if config.output_folder is not None:
        folder = Path(config.output_folder)
        write_reports(folder, findings)
        print(f"written: {', '.join(str(folder / name) for name in (JSON, PAGE, HTML))}")
    return 1 if findings.valid is False else 0


def write_reports(folder: Path, findings: Findings) -> None:
    """experiment.json, experiment.md and experiment.html: the same bytes for the same findings."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        encoded = msgspec.json.format(msgspec.json.encode(findings), indent=2)
        (folder / JSON).write_bytes(encoded + b"\n")
        (folder / PAGE).write_text(markdown(findings), encoding="utf-8")
        page = html_page.page(rows.title(findings), _body(findings), plots_of(findings))
        (folder / HTML).write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output-folder {folder}: {error}") from error


def text(findings: Findings) -> str:
    """What is printed."""
    lines = [rows.title(findings), *(f"  {line}" for line in rows.preamble(findings))]
    for heading, head, cells in rows.sections(findings):
        lines += ["", f"{heading}:" if heading else "", *_aligned([head, *cells])]
    lines += ["", *(f"warning: {warning}" for warning in findings.warnings)]
    lines.append(rows.verdict(findings))
    return "\n".join(line for line in lines if line is not None)


def markdown(findings: Findings) -> str:
    """The same as a page of Markdown."""
    lines = [f"# {rows.title(findings)}", "", f"**{rows.verdict(findings)}**", ""]
    lines += [f"- warning: {warning}" for warning in findings.warnings]
    lines += [f"- {line}" for line in rows.preamble(findings)]
    for heading, head, cells in rows.sections(findings):
        lines += ["", f"## {heading}", "", _row(head), "|" + " --- |" * len(head)]
        lines += map(_row, cells)
    return "\n".join([*lines, "", rows.HOW_TO_READ]) + "\n"


def plots_of(findings: Findings) -> list[Plot]:
    """Of the primary metric: the interval that may be looked at any time."""
    primary = next((metric for metric in findings.metrics if metric.primary), None)
    if primary is None or not primary.peeks:
        return []
    at = [peek.pairs for peek in primary.peeks]
    series = {
        "estimate": [peek.estimate for peek in primary.peeks],
        "low": [peek.interval.low for peek in primary.peeks],
        "high": [peek.interval.high for peek in primary.peeks],
    }
    traces: list[dict[str, object]] = [
        {"type": "scatter", "name": name, "x": at, "y": [float(f"{v:.5g}") for v in values]}
        for name, values in series.items()
    ]
    unit = "log ratio" if primary.effect.as_ratio else primary.unit or "difference"
    return [Plot(f"{primary.name}: confidence sequence", "pairs", f"B - A ({unit})", traces)]


def _body(findings: Findings) -> Iterator[str]:
    yield html_page.heading(rows.title(findings), 1)
    yield html_page.paragraph(rows.verdict(findings), _CLASSES[findings.valid])
    for warning in findings.warnings:
        yield html_page.paragraph(warning, "bad")
    for line in rows.preamble(findings):
        yield html_page.paragraph(line)
    for heading, head, cells in rows.sections(findings):
        yield html_page.heading(heading)
        yield html_page.table(head, cells)
    yield html_page.paragraph(rows.HOW_TO_READ, "note")


def _findings(log: Log) -> Findings:
    try:
        return findings_of(log)
    except KeyError as error:
        raise ConfigError(f"the declaration names an unknown metric: {error}") from error


def _records(files: Sequence[Path]) -> Iterator[Record]:
    for path in files:
        try:
            with path.open("rb") as lines:
                yield from read_lines(lines, str(path))
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def _aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        yield "  " + "  ".join(cells).rstrip()


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
