"""The rows that routing is judged by: kv_cost against SGLang's rule and the oracle, simulated.

    python benchmarks/routing_rows.py --traces FOLDER [--seeds 0 1 2] [--rows conversation-80 ...]

FOLDER holds the traces, plain or gzip, under these names:
  mooncake_conversation_trace.jsonl.gz, mooncake_synthetic_trace.jsonl.gz
    conversation_trace.jsonl and synthetic_trace.jsonl of the folder FAST25-release/traces in
    kvcache-ai/Mooncake on GitHub, compressed.
  claude_code_agents_b512.jsonl.gz
    the sessions of callanjfox/kv-cache-tester on GitHub, their ids made anew for blocks of 512
    tokens that name whole prefixes; a line a request with session, turn, think (s), input_length,
    output_length, hash_ids.
  toolagent_proxy_SYNTHETIC.jsonl.gz
    the conversation trace with shared beginnings of 12 blocks before 37 % of its requests and of 5
    before 14 %.
A row whose file is not there is left out. Every policy has one configuration for all rows. A row
takes half a minute to one minute a seed on one core; the median of the seeds counts,
and behind it stand the seeds that miss what is asked for, or the one that was worst.
"""

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import truediv
from pathlib import Path

from radixgate.loadgen.simulator.config import SimulateConfig
from radixgate.loadgen.simulator.results import Results
from radixgate.loadgen.simulator.rules import rule_named
from radixgate.loadgen.simulator.simulate import Trial
from radixgate.policies.registry import PolicyConfigs

POLICIES = ("sglang_cache_aware", "kv_cost", "oracle")
FIGURES: Mapping[str, Callable[[Results], float]] = {
    "hit": lambda one: one.hit_rate,
    "p50": lambda one: one.ttft_s.p50,
    "p95": lambda one: one.ttft_s.p95,
    "p99": lambda one: one.ttft_s.p99,
    "e2e": lambda one: one.e2e_s.mean,
}


@dataclass(frozen=True, slots=True)
class Row:
    """A trace under a load, and how much of the baseline's TTFT kv_cost may need."""

    file: str
    load: float
    kv_blocks: int
    limits: Mapping[str, float]  # figure -> share of sglang_cache_aware's


ROWS = {
    "conversation-80": Row(
        "mooncake_conversation_trace.jsonl.gz", 0.8, 4_000, {"p50": 0.5, "p95": 0.5}
    ),
    "conversation-95": Row(
        "mooncake_conversation_trace.jsonl.gz", 0.95, 4_000, {"p50": 0.6, "p95": 0.5}
    ),
    "tool-agent-80": Row(
        "toolagent_proxy_SYNTHETIC.jsonl.gz", 0.8, 4_000, {"p50": 0.35, "p95": 0.45}
    ),
    "synthetic-50": Row("mooncake_synthetic_trace.jsonl.gz", 0.5, 4_000, {"p50": 0.9, "p95": 0.75}),
    "claude-code-80": Row(
        "claude_code_agents_b512.jsonl.gz", 0.8, 16_000, {"p95": 0.65, "p99": 0.65}
    ),
}
Figures = Mapping[str, Sequence[float]]  # figure -> one a seed


@dataclass(frozen=True, slots=True)
class Demand:
    """What kv_cost must reach against sglang_cache_aware in the same run."""

    figure: str
    compared: Callable[[float, float], float]  # ours and theirs
    most: float
    words: str  # with a place for what was compared


# Whatever the row.
DEMANDS = (
    Demand("hit", lambda ours, theirs: 100 * (theirs - ours), 2.0, "hits lost {:.1f} points"),
    Demand("e2e", lambda ours, theirs: 100 * (ours / theirs - 1), 0.5, "E2E {:+.1f} %"),
)


def measure(row: Row, traces: Path, seeds: Sequence[int]) -> Mapping[str, Figures]:
    """Of each policy."""
    found: dict[str, list[Results]] = {name: [] for name in POLICIES}
    for seed in seeds:
        trial = Trial(
            SimulateConfig(
                trace=str(traces / row.file), load=row.load, kv_blocks=row.kv_blocks, seed=seed
            )
        )
        for name in POLICIES:
            found[name].append(trial.run(rule_named(name, PolicyConfigs())))
    return {
        name: {figure: [read(one) for one in results] for figure, read in FIGURES.items()}
        for name, results in found.items()
    }


def verdicts(row: Row, seeds: Sequence[int], ours: Figures, theirs: Figures) -> list[str]:
    """Each demand with what came of the medians, and of the worst seed or all that miss it."""
    times = (
        Demand(figure, truediv, limit, f"TTFT {figure} {{:.2f}} of {limit:.2f} x")
        for figure, limit in row.limits.items()
    )
    lines = []
    for demand in (*times, *DEMANDS):
        pair = ours[demand.figure], theirs[demand.figure]
        found = demand.compared(*map(statistics.median, pair))
        text = demand.words.format(found)
        by_seed = sorted(zip(map(demand.compared, *pair), seeds, strict=True), reverse=True)
        missed = [one for one in by_seed if one[0] > demand.most]
        singles = ", ".join(f"seed {seed}: {value:.3g}" for value, seed in missed or by_seed[:1])
        lines.append(
            (text if found <= demand.most else f"**{text}: not met**")
            + f" ({'missed by ' if missed else ''}{singles})"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    words = parser.parse_args()
    print("| row | policy | hit | TTFT p50 / p95 / p99, s | E2E mean, s | kv_cost |")
    print("|---|---|---|---|---|---|")
    for name in words.rows:
        file = words.traces / ROWS[name].file
        if not file.exists():
            print(f"{name} is left out: there is no {file}; see the head of this file", flush=True)
            continue
        figures = measure(ROWS[name], words.traces, words.seeds)
        told = verdicts(ROWS[name], words.seeds, figures["kv_cost"], figures["sglang_cache_aware"])
        for policy, each in figures.items():
            one = {figure: statistics.median(values) for figure, values in each.items()}
            verdict = "; ".join(told) if policy == "kv_cost" else ""
            print(
                f"| {name} | {policy} | {one['hit']:.3f} | {one['p50']:.2f} / {one['p95']:.2f} /"
                f" {one['p99']:.2f} | {one['e2e']:.2f} | {verdict} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
