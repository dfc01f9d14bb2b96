"""`radixgate report`: the reports of a run or of a comparison, made anew from what was recorded."""

from radixgate.loadgen.compare.report import is_comparison, write_comparison
from radixgate.loadgen.output_places import writing
from radixgate.loadgen.report import table
from radixgate.loadgen.reports.regenerate import (
    HTML,
    PAGE,
    SUMMARY,
    overview_text,
    verdict_line,
    write_reports,
)
from radixgate.loadgen.reports.report_config import ReportConfig


def run_report(config: ReportConfig) -> int:
    """Write the reports and print the table. Raises ConfigError for a folder without a run."""
    if is_comparison(config.path):
        with writing("--folder", config.path):
            text, _ = write_comparison(config.path)
        print(text)
        return 0
    with writing("--folder", config.path):
        run, summary = write_reports(config.path)
    print(table(run.info.bench, summary.classic))
    print(overview_text(run.info, summary))
    print(verdict_line(summary))
    print(f"written: {', '.join(str(config.path / name) for name in (SUMMARY, PAGE, HTML))}")
    return 0
