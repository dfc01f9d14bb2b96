"""Switchbacks on simulated fleets whose answer is known: do they find it, and how often nothing?

python benchmarks/experiments_check.py alike --pair round_robin --first 0 --runs 400
python benchmarks/experiments_check.py truth --pair threshold --first 100 --seeds 8
python benchmarks/experiments_check.py drain --pair threshold --first 400 --seeds 8
python benchmarks/experiments_check.py report
python benchmarks/experiments_check.py all

`alike`: an arm against itself, and effects put in afterwards. `truth`: the estimate against the
same traffic under each arm alone, for each design. `drain`: the same where most of the users wait
under one arm, so that a switch finds a backlog. All append to out/experiments_check.jsonl, which
`report` reads, so that long checks may be done in parts.
"""

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from scipy import stats

from radixgate.loadgen.simulator.switchback_trials import (
    CROWDED,
    PAIRS,
    Design,
    PolicyPair,
    estimated_effect,
    lived,
    true_effect,
    try_alike,
)

OUT = Path("out/experiments_check.jsonl")
# Arms that are alike have no steady state to wait for: short blocks will do.
ALIKE = Design(block_s=50.0, washout_s=10.0, hold_cap_s=25.0)
# Of seven pairs the test can refuse 6 orders of 128, which is nearest to 5 % for so few.
ALIKE_PAIRS, ALIKE_LEAD_S = 7, 40.0


@dataclass(frozen=True, slots=True)
class Question:
    """A pair, and the designs that are asked for its effect; the first must find it."""

    part: str
    pair: PolicyPair
    seconds: float
    lead_s: float
    designs: Mapping[str, Design]
    # Designs that must not find it: what they leave out is needed. Where there are any, the first
    # must find it on every seed, and each of these must miss it on one at least; else on average.
    fail: tuple[str, ...] = ()

    @property
    def key(self) -> dict[str, str]:
        return {"part": self.part, "pair": self.pair.name}


def designs(block_s: float) -> Mapping[str, Design]:
    """Those that are compared, with washouts of half a block."""
    washout_s = block_s / 2
    return {
        f"hold, reset, blocks of {block_s:.0f} s": Design(block_s, washout_s),
        "mirror shared": Design(block_s, washout_s, resets_mirror=False),
        "no hold": Design(block_s, washout_s, hold_cap_s=0.0),
        "no hold, blocks of 120 s": Design(120.0, 60.0, hold_cap_s=0.0),
    }


# Between 64 and 4 copies of a prompt have to spread, or to go: that takes longer.
TRUTHS = {
    "round_robin": Question("truth", PAIRS["round_robin"], 5_760.0, 300.0, designs(960.0)),
    "threshold": Question("truth", PAIRS["threshold"], 11_520.0, 300.0, designs(1_920.0)),
}


def must_hold(block_s: float, washout_s: float, hold_cap_s: float) -> Mapping[str, Design]:
    """The full design, and what is left of it without the hold and without the reset."""
    full = Design(block_s, washout_s, hold_cap_s)
    return {
        f"hold, reset, blocks of {block_s:.0f} s": full,
        "no hold": replace(full, hold_cap_s=0.0),
        "mirror shared": replace(full, resets_mirror=False),
    }


LEFT_OUT = ("no hold", "mirror shared")
DRAINS = {
    "round_robin": Question(
        "drain", CROWDED["round_robin"], 4_800.0, 600.0, must_hold(300.0, 30.0, 120.0), LEFT_OUT
    ),
    "threshold": Question(
        "drain", CROWDED["threshold"], 9_600.0, 600.0, must_hold(600.0, 150.0, 200.0), LEFT_OUT
    ),
}
ALLOWED = 0.10
# Loads and lengths were settled on seeds below it.
UNSEEN = 400


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=("all", "alike", "truth", "drain", "report"))
    parser.add_argument("--pair", choices=tuple(PAIRS), default="round_robin")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--for-s", type=float, default=math.inf, help="stop after so many seconds")
    asked = parser.parse_args()
    OUT.parent.mkdir(exist_ok=True)
    until = time.monotonic() + asked.for_s
    if asked.part == "all":
        seeds = range(UNSEEN, UNSEEN + asked.seeds)
        for name in PAIRS:
            answer(DRAINS[name], seeds, until)
            answer(TRUTHS[name], seeds, until)
            alike(name, range(asked.runs), until)
    elif asked.part == "alike":
        return alike(asked.pair, range(asked.first, asked.first + asked.runs), until)
    elif asked.part != "report":
        question = (DRAINS if asked.part == "drain" else TRUTHS)[asked.pair]
        return answer(question, range(asked.first, asked.first + asked.seeds), until)
    return report()


def alike(name: str, seeds: Iterable[int], until: float) -> int:
    done = {row["seed"] for row in rows("alike", name)}
    for seed in seeds:
        if seed in done:
            continue
        if time.monotonic() > until:
            return 3
        trial = try_alike(PAIRS[name], ALIKE, ALIKE_PAIRS, seed, ALIKE_LEAD_S)
        append({"part": "alike", "pair": name, "seed": seed, **asdict(trial)})
    return 0


def answer(question: Question, seeds: Iterable[int], until: float) -> int:
    done = {row["seed"] for row in answers(question)}
    for seed in seeds:
        if seed in done:
            continue
        if time.monotonic() > until:
            return 3
        a, b = true_effect(question.pair, question.seconds, seed, question.lead_s)
        found = {}
        for label, design in question.designs.items():
            pairs = round(question.seconds / 2 / design.block_s)
            records = lived(question.pair, design, pairs, seed, question.lead_s)
            found[label] = estimated_effect(records)
        append({**question.key, "seed": seed, "a": a, "b": b, "found": found})
    return 0


def report() -> int:
    ok = True
    for name in PAIRS:
        trials = rows("alike", name)
        if trials:
            ok &= report_alike(name, trials)
    for question in (*TRUTHS.values(), *DRAINS.values()):
        seeds = answers(question)
        if seeds:
            ok &= report_truth(question, seeds)
    return 0 if ok else 1


def report_alike(name: str, trials: Sequence[dict]) -> bool:  # type: ignore[type-arg]
    n = len(trials)
    low, high = (int(bound) for bound in stats.binom.interval(0.99, n, 0.05))
    print(
        f"\n{name}: {n} switchbacks of arms that are alike; {low} to {high} may be refused at 5 %"
    )
    ok = True
    for metric in trials[0]["p"]:
        refused = sum(trial["p"][metric] <= 0.05 for trial in trials)
        ok &= low <= refused <= high
        print(f"  randomisation test, {metric}: {refused} ({refused / n:.1%})")
    naive = sum(trial["naive_p"] <= 0.05 for trial in trials)
    print(f"  Welch over requests, ttft: {naive} ({naive / n:.1%})")
    ok &= naive > high
    for factor in trials[0]["covered"]:
        covered = sum(trial["covered"][factor] for trial in trials)
        mean = math.exp(math.fsum(math.log(trial["recovered"][factor]) for trial in trials) / n)
        ok &= n - high <= covered <= n - low
        print(
            f"  effect of {float(factor) - 1:+.0%}: {covered} intervals hold it ({covered / n:.1%},"
            f" {n - high} to {n - low} allowed), found {mean - 1:+.1%} on average"
        )
    return bool(ok)


def report_truth(question: Question, seeds: Sequence[dict]) -> bool:  # type: ignore[type-arg]
    name, n = question.pair.name, len(seeds)
    effects = [row["b"] - row["a"] for row in seeds]
    effect = math.fsum(effects) / n
    a = math.fsum(row["a"] for row in seeds) / n
    print(f"\n{name}: {n} seeds, mean TTFT {1000 * a:.0f} ms under A, {1000 * effect:+.0f} ms by B")
    errors = defaultdict(list)
    for row, true in zip(seeds, effects, strict=True):
        for label, found in row["found"].items():
            errors[label].append((found - true) / effect)
    ok = True
    for label, found in errors.items():
        mean = math.fsum(found) / n
        error = math.sqrt(math.fsum((x - mean) ** 2 for x in found) / (n - 1) / n) if n > 1 else 0.0
        near = sum(abs(x) <= ALLOWED for x in found)
        print(
            f"  {label}: {mean:+.1%} off, standard error {error:.1%},"
            f" seeds from {min(found):+.1%} to {max(found):+.1%},"
            f" {near} of {n} within {ALLOWED:.0%}"
        )
        if label == next(iter(question.designs)):
            ok &= near == n if question.fail else abs(mean) <= ALLOWED
        elif label in question.fail:
            ok &= near < n
    return ok


def answers(question: Question) -> list[dict]:  # type: ignore[type-arg]
    """Of the designs that are compared now; those of an earlier set-up say nothing of these."""
    return [row for row in rows(**question.key) if row["found"].keys() == question.designs.keys()]


def rows(part: str, pair: str) -> list[dict]:  # type: ignore[type-arg]
    if not OUT.exists():
        return []
    found = [json.loads(line) for line in OUT.read_text().splitlines()]
    return [row for row in found if (row["part"], row["pair"]) == (part, pair)]


def append(row: dict) -> None:  # type: ignore[type-arg]
    with OUT.open("a") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    sys.exit(main())
