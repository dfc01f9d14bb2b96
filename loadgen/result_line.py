"""The JSON line of a run, under the keys that SGLang's bench writes."""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from radixgate.analysis.latency import e2e_s, itl_tokens_s, ttft_s
from radixgate.analysis.percentiles import Spread, values_needed
from radixgate.analysis.records import RequestRecord
from radixgate.analysis.summary import Summary
from radixgate.loadgen.config import BenchConfig

_FIGURES = {"mean": "mean", "median": "p50", "std": "std", "p99": "p99"}


def result_of(config: BenchConfig, summary: Summary, schedule_hash: str) -> dict[str, object]:
    """SGLang's keys first (times in ms, null where there is nothing to tell), then ours."""
    return {
        "tag": config.tag,
        "backend": config.backend,
        "dataset_name": config.dataset_name,
        "request_rate": _finite(config.request_rate),
        "max_concurrency": config.max_concurrency,
        "sharegpt_output_len": config.output_len,
        "random_input_len": config.random_input_len,
        "random_output_len": config.random_output_len,
        "random_range_ratio": config.random_range_ratio,
        "duration": summary.duration_s,
        "completed": summary.completed,
        "total_input_tokens": summary.input_tokens,
        "total_output_tokens": summary.output_tokens,
        "request_throughput": summary.request_rate,
        "input_throughput": summary.input_token_rate,
        "output_throughput": summary.output_token_rate,
        "total_throughput": summary.total_token_rate,
        **_in_ms("e2e_latency", summary.e2e),
        **_in_ms("ttft", summary.ttft),
        **_in_ms("tpot", summary.tpot),
        **_in_ms("itl", summary.itl, p95="p95", max="max"),
        "concurrency": summary.concurrency,
        **_in_ms("itl_gap", summary.itl_gap, p95="p95", max="max"),
        **(_open_loop(summary) if config.open_loop else {}),
        "cached_token_share": summary.cached_token_share,
        "offered": summary.offered,
        "failed": summary.failed,
        "failures": summary.failures,
        "workers": summary.workers,
        "wall_duration": summary.wall_s,
        "seed": config.seed,
        "schedule_hash": schedule_hash,
    }


def details_of(records: Sequence[RequestRecord]) -> dict[str, object]:
    """One value a request in the order of the schedule; null where there is none. Times in s."""
    return {
        "input_lens": [
            r.planned_prompt_tokens if r.prompt_tokens is None else r.prompt_tokens for r in records
        ],
        "output_lens": [r.output_tokens for r in records],
        "cached_lens": [r.cached_tokens for r in records],
        "ttfts": [ttft_s(r) if r.ok else None for r in records],
        "itls": [itl_tokens_s(r) if r.ok else [] for r in records],
        "e2e_latencies": [e2e_s(r) if r.ok else None for r in records],
        "intended_times": [r.t_intended_s for r in records],
        "dispatch_times": [r.t_dispatch_s for r in records],
        "workers": [r.worker_id for r in records],
        "errors": ["" if r.ok else f"{r.failure}: {r.failure_detail}" for r in records],
    }


def append_line(path: Path, result: dict[str, object]) -> None:
    """Add one line of JSON to a file, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(msgspec.json.encode(result) + b"\n")


def _open_loop(summary: Summary) -> dict[str, object]:
    """Ours, so a P99 that too few values hold up is null."""
    return {
        **_refused(_in_ms("response_ttft", summary.response_ttft), summary.response_ttft),
        **_refused(_in_ms("response_e2e_latency", summary.response_e2e), summary.response_e2e),
        **_refused(_in_ms("schedule_lag", summary.schedule_lag, max="max"), summary.schedule_lag),
    }


def _refused(figures: dict[str, float | None], spread: Spread | None) -> dict[str, float | None]:
    few = spread is None or spread.n < values_needed(99)
    return {name: None if few and name.startswith("p99_") else v for name, v in figures.items()}


def _in_ms(name: str, spread: Spread | None, **further: str) -> dict[str, float | None]:
    return {
        f"{key}_{name}_ms": None if spread is None else 1000 * getattr(spread, figure)
        for key, figure in {**_FIGURES, **further}.items()
    }


def _finite(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else "inf"
