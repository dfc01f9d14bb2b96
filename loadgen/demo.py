"""`radixgate demo`: what routing by cache is worth, on this machine, in a few minutes."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from radixgate.analysis.percentiles import Spread
from radixgate.analysis.summary import Summary
from radixgate.clock import SystemClock
from radixgate.errors import ProcessFailed
from radixgate.loadgen.bench import INTERRUPTED
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.demo_config import POLICIES, DemoConfig
from radixgate.loadgen.fresh_fleet import fresh_household
from radixgate.loadgen.intended import schedule_of
from radixgate.loadgen.measurement import measure
from radixgate.loadgen.output_places import check_file, writing
from radixgate.loadgen.progress import open_progress
from radixgate.loadgen.schedule import hash_of
from radixgate.up_config import UpConfig

Figures = dict[str, object]


def run_demo(config: DemoConfig) -> int:
    """Play one schedule under each policy before the same workers, print and write both.

    The exit code is 1 if a request failed under either, 130 after Ctrl-C, else 0.
    Raises ConfigError if the figures could not be written, ProcessFailed if a process does not come
    up, or if the time limit passes first.
    """
    check_file("--output", config.output)
    try:
        summaries = asyncio.run(_within_limit(config))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except TimeoutError as error:
        raise ProcessFailed(
            f"the demo took over {config.time_limit_s:g} s; on a slow or busy machine give "
            "--time-limit-s more, or --questions fewer"
        ) from error
    print(comparison(summaries), flush=True)
    write_figures(Path(config.output), summaries)
    print(f"written to {config.output}")
    return 1 if any(summary.failed for summary in summaries.values()) else 0


def bench_config(config: DemoConfig, base_url: str) -> BenchConfig:
    """The demo as a bench: documents are shared prefixes with zipf popularity."""
    return BenchConfig(
        backend="radixgate",
        base_url=base_url,
        dataset_name="generated-shared-prefix",
        gsp_num_groups=config.documents,
        gsp_prompts_per_group=config.questions // config.documents,
        gsp_system_prompt_len=config.document_tokens,
        gsp_question_len=config.question_tokens,
        gsp_output_len=config.output_tokens,
        gsp_group_distribution="zipf",
        gsp_zipf_alpha=config.zipf_alpha,
        max_concurrency=config.max_concurrency,
        # One for each worker at least: the first forward pass of a process is a slow one.
        warmup_requests=2 * config.workers,
        # Each policy begins with empty caches; new workers would take longer than the questions.
        flush_cache=True,
        seed=config.seed,
    )


def figures_of(summary: Summary) -> Figures:
    """The figures of one policy as out/demo.json holds them; null where nothing was measured."""
    ttft = summary.ttft
    return {
        "hit_rate": summary.cached_token_share,
        "ttft_ms": {
            "p50": None if ttft is None else 1000 * ttft.p50,
            "p99": None if ttft is None else 1000 * ttft.p99,
        },
        "requests_per_s": summary.request_rate,
    }


def write_figures(path: Path, summaries: Mapping[str, Summary]) -> None:
    """By policy, as JSON. Raises ConfigError."""
    figures = {policy: figures_of(summary) for policy, summary in summaries.items()}
    with writing("--output", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")


def comparison(summaries: Mapping[str, Summary]) -> str:
    """The policies side by side, one figure a line."""
    lines = [f"{'':<24}" + "".join(f"{policy:>16}" for policy in summaries)]
    for name, cell in _ROWS.items():
        lines.append(f"{name:<24}" + "".join(f"{cell(s):>16}" for s in summaries.values()))
    return "\n".join(lines)


async def _within_limit(config: DemoConfig) -> dict[str, Summary]:
    summaries: dict[str, Summary] = {}
    async with asyncio.timeout(config.time_limit_s):
        print(f"starting {config.workers} workers and a gateway", flush=True)
        async with fresh_household(_fleet_of(config, POLICIES[0])) as household:
            for policy in POLICIES:
                if summaries:
                    await household.change_policy(policy)
                summaries[policy] = await _measured_under(config, policy, household.url)
    return summaries


async def _measured_under(config: DemoConfig, policy: str, url: str) -> Summary:
    clock = SystemClock()
    bench = bench_config(config, url)
    schedule = schedule_of(bench)
    print(f"{policy}: {len(schedule)} questions, xxh3_128 {hash_of(schedule)}", flush=True)
    run = await measure(
        bench,
        schedule,
        clock,
        lambda total: open_progress(total, clock, shown=True, terminal=False),
    )
    return run.summary


def _fleet_of(config: DemoConfig, policy: str) -> UpConfig:
    return UpConfig(
        model_path=config.model_path,
        workers=config.workers,
        policy=policy,
        page_size=config.page_size,
        max_total_tokens=config.pool_tokens,
        threads=config.threads,
        start_timeout_s=config.start_timeout_s,
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _computed(summary: Summary) -> str:
    """Prompt tokens that no cache had."""
    share = summary.cached_token_share
    return "-" if share is None else str(round(summary.input_tokens * (1 - share)))


def _ms(spread: Spread | None, figure: str) -> str:
    return "-" if spread is None else f"{1000 * getattr(spread, figure):.0f}"


_ROWS: Mapping[str, Callable[[Summary], str]] = {
    "prefix cache hit rate": lambda s: _share(s.cached_token_share),
    "prompt tokens computed": _computed,
    "TTFT p50 (ms)": lambda s: _ms(s.ttft, "p50"),
    "TTFT p99 (ms)": lambda s: _ms(s.ttft, "p99"),
    "E2E p50 (ms)": lambda s: _ms(s.e2e, "p50"),
    "requests per second": lambda s: f"{s.request_rate:.2f}",
    "requests per worker": lambda s: " + ".join(map(str, s.workers.values())) or "-",
    "requests failed": lambda s: f"{s.failed} of {s.offered}",
}
