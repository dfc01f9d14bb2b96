"""`radixgate compare`: play the same schedule under each arm, in turn and back."""

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from radixgate.clock import SystemClock
from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.compare.config import CompareConfig, ComparedArm
from radixgate.loadgen.compare.report import COMPARISON, Comparison, RunOf, write_comparison
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.fresh_fleet import fresh_fleet
from radixgate.loadgen.intended import schedule_of
from radixgate.loadgen.measurement import measure
from radixgate.loadgen.output_places import check_folder, writing
from radixgate.loadgen.progress import open_progress
from radixgate.loadgen.reports.run_folder import run_info, write_run
from radixgate.loadgen.reusable import with_reusable
from radixgate.loadgen.schedule import Schedule, hash_of, write_schedule
from radixgate.loadgen.workload_config import WorkloadConfig
from radixgate.open_files import raise_limit
from radixgate.policies.registry import SLO_POLICY, make_policy
from radixgate.up_config import UpConfig

_FOLDER = "out/compare"
_INTERRUPTED = 130


def run_compare(
    compare: CompareConfig, bench: BenchConfig, workload: WorkloadConfig, shape: ArrivalConfig
) -> int:
    """Measure, print the differences, write them; 130 after Ctrl-C, 1 if a run had no success.

    Raises ConfigError as the bench does, and ProcessFailed if a fleet does not come up.
    """
    raise_limit()
    if bench.base_url is not None:
        raise ConfigError("--base-url is one server; a comparison takes --policies or --urls")
    for arm in compare.arms:
        if arm.policy is not None:  # else found out when its turn comes, minutes later
            make_policy(arm.policy, SystemClock(), random.Random(0))
        if arm.policy == SLO_POLICY:
            raise ConfigError(
                f"{SLO_POLICY} keeps --ttft-slo or --itl-slo, which gateways that are started here"
                " are not told: start them yourself, and give --urls"
            )
    check_folder("--output-folder", bench.output_folder or _FOLDER)
    folder = Path(bench.output_folder or _FOLDER)
    schedule = schedule_of(bench, workload, shape)
    print(f"schedule: {len(schedule)} requests, xxh3_128 {hash_of(schedule)}", flush=True)
    with writing("--output-folder", folder):
        write_schedule(folder / "schedule.jsonl", schedule)
        # An earlier comparison's runs are overwritten from here on, so it is one no longer.
        (folder / COMPARISON).unlink(missing_ok=True)
    runs: list[RunOf] = []
    try:
        for arm, number in compare.order:
            name = f"{len(runs):02}-{_file_name(arm.name)}"
            print(f"round {number + 1} of {compare.rounds}: {arm.name}", flush=True)
            config = replace(bench, output_folder=str(folder / name), tag=arm.name)
            asyncio.run(_measured(compare, arm, (config, workload, shape), schedule))
            runs.append(RunOf(arm.name, number, name))
    except KeyboardInterrupt:
        print("interrupted: a part of a comparison is none", file=sys.stderr)
        return _INTERRUPTED
    comparison = Comparison(
        [arm.name for arm in compare.arms], runs, _started(compare), hash_of(schedule)
    )
    encoded = msgspec.json.encode(comparison)
    with writing("--output-folder", folder):
        (folder / COMPARISON).write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")
        text, worked = write_comparison(folder)
    print(text)
    print(f"written: {folder}", flush=True)
    return 0 if worked else 1


async def _measured(
    compare: CompareConfig,
    arm: ComparedArm,
    sections: tuple[BenchConfig, WorkloadConfig, ArrivalConfig],
    schedule: Schedule,
) -> None:
    clock = SystemClock()
    bench, workload, shape = sections
    async with _gateway(compare, arm) as url:
        flush = arm.url is not None and compare.cache == "flush"
        config = replace(bench, base_url=url, flush_cache=bench.flush_cache or flush)
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        run = await measure(
            config,
            schedule,
            clock,
            lambda total: open_progress(
                total, clock, shown=not config.disable_tqdm, terminal=sys.stderr.isatty()
            ),
        )
    info = run_info((config, workload, shape), run.schedule_hash, run.clients, started_at)
    assert config.output_folder is not None
    folder = Path(config.output_folder)
    with writing("--output-folder", folder):
        write_run(folder, info, with_reusable(run.records, schedule), run.polls)


@asynccontextmanager
async def _gateway(compare: CompareConfig, arm: ComparedArm) -> AsyncIterator[str]:
    """The arm's gateway: one that is there, or a new fleet that is gone afterwards."""
    if arm.url is not None:
        yield arm.url
        return
    assert arm.policy is not None
    fresh = UpConfig(
        model_path=compare.model_path,
        workers=compare.workers,
        policy=arm.policy,
        page_size=compare.page_size,
        max_total_tokens=compare.max_total_tokens,
        threads=compare.threads,
        start_timeout_s=compare.start_timeout_s,
    )
    async with fresh_fleet(fresh) as url:
        yield url


def _started(compare: CompareConfig) -> str:
    if compare.policies:
        return f"fresh processes for each run: {compare.workers} workers of {compare.model_path}"
    state = "caches and mirrors flushed before" if compare.cache == "flush" else "nothing flushed"
    return f"gateways that were there, {state} each run"


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
