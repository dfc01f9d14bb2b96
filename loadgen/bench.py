"""`radixgate bench`: plan, measure, report."""

import asyncio
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from radixgate.analysis.summary import Summary
from radixgate.clock import SystemClock
from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.failure_messages import first_messages
from radixgate.loadgen.intended import schedule_of
from radixgate.loadgen.measurement import BenchRun, measure
from radixgate.loadgen.output_places import check_file, check_folder, writing
from radixgate.loadgen.progress import Progress, open_progress
from radixgate.loadgen.report import table
from radixgate.loadgen.reports.regenerate import overview_text, verdict_line, write_reports
from radixgate.loadgen.reports.run_folder import Run, run_info, write_run
from radixgate.loadgen.reports.whole_summary import WholeSummary, whole_summary
from radixgate.loadgen.result_line import append_line, details_of, result_of
from radixgate.loadgen.reusable import with_reusable
from radixgate.loadgen.schedule import Schedule, hash_of, write_schedule
from radixgate.loadgen.study import run_search, run_sweep
from radixgate.loadgen.study_config import StudyConfig
from radixgate.loadgen.workload_config import WorkloadConfig
from radixgate.open_files import raise_limit

INTERRUPTED = 130  # as shells say it: 128 and SIGINT's number


@dataclass(frozen=True, slots=True)
class Workbench:
    """What a bench was told, apart from what is measured at which rate."""

    workload: WorkloadConfig
    shape: ArrivalConfig

    def schedule(self, config: BenchConfig) -> Schedule:
        """Raises ConfigError."""
        return schedule_of(config, self.workload, self.shape)

    def measured(self, config: BenchConfig) -> WholeSummary:
        """One run: printed, and written wherever the settings say."""
        schedule = self.schedule(config)
        print(f"schedule: {len(schedule)} requests, xxh3_128 {hash_of(schedule)}", flush=True)
        if config.schedule_file is not None:
            with writing("--schedule-file", Path(config.schedule_file)):
                write_schedule(Path(config.schedule_file), schedule)
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        run = _play(config, schedule)
        print(table(config, run.summary, first_messages(run.records)), flush=True)
        _append(config, run)
        return self._kept(config, schedule, run, started_at)

    def _kept(
        self, config: BenchConfig, schedule: Schedule, run: BenchRun, started_at: str
    ) -> WholeSummary:
        """Into the output folder if there is one; the verdict is printed in any case."""
        sections = (config, self.workload, self.shape)
        info = run_info(sections, run.schedule_hash, run.clients, started_at)
        records = with_reusable(run.records, schedule)
        if config.output_folder is None:
            summary = whole_summary(Run(info, records, run.polls))
        else:
            folder = Path(config.output_folder)
            with writing("--output-folder", folder):
                write_run(folder, info, records, run.polls)
                _, summary = write_reports(folder)
        print(overview_text(info, summary))
        print(verdict_line(summary), flush=True)
        if config.output_folder is not None:
            print(f"written: {config.output_folder}")
        return summary


def run_bench(
    config: BenchConfig,
    workload: WorkloadConfig | None = None,
    shape: ArrivalConfig | None = None,
    study: StudyConfig | None = None,
) -> int:
    """Measure and print; the exit code is 1 if nothing succeeded, 130 after Ctrl-C, else 0.

    Failures are counted by class in the table and in the result line, and flagged under it.
    Raises ConfigError for settings or a file that cannot be used, and for a server that is not
    there.
    """
    raise_limit()
    check_file("--output-file", config.output_file)
    check_file("--schedule-file", config.schedule_file)
    check_folder("--output-folder", config.output_folder)
    bench = Workbench(workload or WorkloadConfig(), shape or ArrivalConfig())
    study = study or StudyConfig()
    if (study.sweep or study.find_goodput) and config.arrives in ("trace", "rl-step"):
        raise ConfigError(f"--arrival {config.arrives} has no rate to vary")
    if (study.sweep or study.find_goodput) and config.schedule_from is not None:
        raise ConfigError("--schedule-from has times of its own, so no rate to vary")
    try:
        if study.sweep:
            return run_sweep(config, study, bench.measured)
        if study.find_goodput:
            return run_search(config, study, bench.measured)
        return 0 if bench.measured(config).completed else 1
    except KeyboardInterrupt:
        print("interrupted: a part of a schedule is no measurement", file=sys.stderr)
        return INTERRUPTED


def _play(config: BenchConfig, schedule: Schedule) -> BenchRun:
    clock = SystemClock()

    def progress(total: int) -> Progress:
        return open_progress(
            total, clock, shown=not config.disable_tqdm, terminal=sys.stderr.isatty()
        )

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        return loop.run(measure(config, schedule, clock, progress))


def _append(config: BenchConfig, run: BenchRun) -> None:
    if config.output_file is None:
        return
    summary: Summary = run.summary
    details = details_of(run.records) if config.output_details else {}
    result = result_of(config, summary, run.schedule_hash)
    with writing("--output-file", Path(config.output_file)):
        append_line(Path(config.output_file), result | details)
