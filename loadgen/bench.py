"""`radixgate bench`: plan, measure, report."""

import asyncio
import sys
from pathlib import Path

import uvloop

from radixgate.clock import SystemClock
from radixgate.loadgen.arrivals import arrival_times
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.by_name import planned_prompts
from radixgate.loadgen.measurement import measure
from radixgate.loadgen.open_files import raise_limit
from radixgate.loadgen.progress import Progress, open_progress
from radixgate.loadgen.report import table
from radixgate.loadgen.result_line import append_line, details_of, result_of
from radixgate.loadgen.schedule import Schedule, hash_of, plan, stream_of, write_schedule

INTERRUPTED = 130  # as shells say it: 128 and SIGINT's number


def run_bench(config: BenchConfig) -> int:
    """Measure and print; the exit code is 1 if nothing succeeded, 130 after Ctrl-C, else 0.

    Failures are counted by class in the table and in the result line, and flagged under it.
    Raises ConfigError for settings or a file that cannot be used, and for a server that is not
    there.
    """
    clock = SystemClock()
    raise_limit()
    schedule = schedule_of(config)
    print(f"schedule: {len(schedule)} requests, xxh3_128 {hash_of(schedule)}", flush=True)
    if config.schedule_file is not None:
        write_schedule(Path(config.schedule_file), schedule)

    def progress(total: int) -> Progress:
        return open_progress(
            total, clock, shown=not config.disable_tqdm, terminal=sys.stderr.isatty()
        )

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
            run = loop.run(measure(config, schedule, clock, progress))
    except KeyboardInterrupt:
        print("interrupted: a part of a schedule is no measurement", file=sys.stderr)
        return INTERRUPTED
    print(table(config, run.summary), flush=True)
    if config.output_file is not None:
        details = details_of(run.records) if config.output_details else {}
        result = result_of(config, run.summary, run.schedule_hash)
        append_line(Path(config.output_file), result | details)
    return 0 if run.summary.completed else 1


def schedule_of(config: BenchConfig) -> Schedule:
    """All requests of the run, from the seed alone. Raises ConfigError."""
    prompts = planned_prompts(config)
    times_s = arrival_times(
        config.arrival,
        count=len(prompts),
        requests_per_s=config.request_rate,
        rng=stream_of(config.seed, "arrivals"),
    )
    return plan(prompts, times_s)
