"""The simulator beside a real fleet: the same requests, three policies, two workers.

    python benchmarks/simulator_against_fleet.py [--model-path smollm2] [--rate 1] [--output FOLDER]

`radixgate compare` plays one schedule under each policy on workers of its own; `radixgate simulate`
plays the same schedule, its step times fitted to the first of these runs. Printed are the hit rates
(predicted within 3 points of the observed ones) and the times to first token, in whose order the
policies must agree. Seven minutes on two quiet cores.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PAGE = 16
POLICIES = ("random", "cache_aware", "kv_cost")
FIGURES = ("hit_rate", "mean", "p50")
SEEDS = 10
RADIXGATE = (sys.executable, "-m", "radixgate.cli")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model-path", default="smollm2")
    parser.add_argument("--rate", type=float, default=1.0, help="requests a second")
    parser.add_argument("--output", type=Path, default=Path("out/simulator_against_fleet"))
    parser.add_argument("--pool-pages", type=int, default=400, help="of each worker")
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--played", action="store_true", help="the fleet's runs are there already")
    args = parser.parse_args()
    if not args.played:
        play(args.output, args.model_path, args.rate, args.pool_pages, args.seed)
    live = {policy: figures(args.output / f"{n:02d}-{policy}") for n, policy in enumerate(POLICIES)}
    simulated = simulate(args.output, args.rate, args.pool_pages)
    report(live, simulated)


def play(output: Path, model: str, rate: float, pool_pages: int, seed: int) -> None:
    """The schedule under each policy, in life."""
    run(
        *("compare", "--policies", *POLICIES, "--rounds", "1", "--workers", "2"),
        *("--model-path", model, "--threads", "1", "--page-size", str(PAGE)),
        *("--max-total-tokens", str(pool_pages * PAGE), "--seed", str(seed)),
        *("--dataset-name", "generated-shared-prefix", "--gsp-group-distribution", "zipf"),
        *("--gsp-zipf-alpha", "0.6", "--gsp-num-groups", "20", "--gsp-prompts-per-group", "5"),
        *("--gsp-system-prompt-len", "500", "--gsp-question-len", "20", "--gsp-output-len", "8"),
        *("--request-rate", f"{rate:g}", "--disable-tqdm", "--output-folder", str(output)),
    )


def figures(folder: Path) -> dict[str, float]:
    """Of the middle 80 % of the requests, as the simulator counts."""
    rows = [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]
    rows = rows[len(rows) // 10 : len(rows) - len(rows) // 10]
    ttft_s = sorted(row["t_first_byte_s"] - row["t_dispatch_s"] for row in rows)
    return {
        "hit_rate": sum(row["cached_tokens"] for row in rows)
        / sum(row["prompt_tokens"] for row in rows),
        "mean": sum(ttft_s) / len(ttft_s),
        "p50": ttft_s[len(ttft_s) // 2],
    }


def simulate(output: Path, rate: float, pool_pages: int) -> dict[str, dict[str, float]]:
    """The same of the simulator, the mean over seeds: what a policy leaves to chance differs."""
    found = [simulated_once(output, rate, pool_pages, seed) for seed in range(SEEDS)]
    return {
        policy: {name: sum(one[policy][name] for one in found) / SEEDS for name in FIGURES}
        for policy in POLICIES
    }


def simulated_once(
    output: Path, rate: float, pool_pages: int, seed: int
) -> dict[str, dict[str, float]]:
    to = output / "simulated.json"
    run(
        *("simulate", "--trace", str(output / "schedule.jsonl"), "--workers", "2"),
        *("--kv-blocks", str(pool_pages), "--block-size", str(PAGE), "--engine", "cpu"),
        *("--fit", str(output / f"00-{POLICIES[0]}"), "--policies", ",".join(POLICIES)),
        *("--capacity", f"{rate:g}", "--load", "1", "--json", str(to), "--seed", str(seed)),
    )
    results: dict[str, Any] = json.loads(to.read_text())["results"]
    return {
        policy: {"hit_rate": one["hit_rate"], **{k: one["ttft_s"][k] for k in ("mean", "p50")}}
        for policy, one in results.items()
    }


def report(live: dict[str, dict[str, float]], simulated: dict[str, dict[str, float]]) -> None:
    print("\n| policy | hits, fleet | simulated | mean TTFT, fleet | simulated | p50 | simulated |")
    print("|---|---|---|---|---|---|---|")
    for policy in POLICIES:
        seen, told = live[policy], simulated[policy]
        cells = [f"{100 * seen['hit_rate']:.1f} %", f"{100 * told['hit_rate']:.1f} %"]
        cells += [f"{1e3 * of[name]:.0f} ms" for name in ("mean", "p50") for of in (seen, told)]
        print(f"| {policy} | {' | '.join(cells)} |")
    off = max(abs(live[p]["hit_rate"] - simulated[p]["hit_rate"]) for p in POLICIES)
    orders = [sorted(POLICIES, key=lambda p: of[p]["mean"]) for of in (live, simulated)]
    print(f"\nhit rates differ by {100 * off:.1f} points at most (bar 3)")
    print(f"by mean TTFT: fleet {' < '.join(orders[0])}; simulator {' < '.join(orders[1])}")


def run(*words: str) -> None:
    subprocess.run([*RADIXGATE, *words], check=True)


if __name__ == "__main__":
    main()
