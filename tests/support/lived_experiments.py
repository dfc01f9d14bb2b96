"""Records of experiments that nobody lived through: drawn, with effects that are known."""

import math
import random
from collections.abc import Sequence

import msgspec

from radixgate.analysis.experiments.blocks import Log, log_of
from radixgate.analysis.experiments.records import (
    Arm,
    BlockEvent,
    Declaration,
    ExperimentEnd,
    Record,
    RequestLine,
)
from radixgate.analysis.experiments.schedule import schedule_of

DECLARED = Declaration(
    experiment="spread",
    kind="switchback",
    arms=(Arm("near", "cache_aware"), Arm("even", "round_robin")),
    began_at=1_700_000_000.0,
    seed=3,
    block_s=100.0,
    pairs=12,
    washout_s=20.0,
    hold_cap_s=10.0,
)


def lived(
    declared: Declaration = DECLARED,
    *,
    factor: float = 1.0,
    noise: float = 0.1,
    carried: float = 0.0,
    requests: int = 40,
    seed: int = 1,
) -> list[Record]:
    """A switchback in which B multiplies TTFT by `factor`, and each block by a noise of its own.

    `carried`: by how much (in logarithms) a block begins as the arm before it was, e-folding in a
    quarter of the block.
    """
    rng = random.Random(seed)
    a = declared.arms[0].name
    schedule = schedule_of(declared)
    records: list[Record] = [declared, schedule]
    before = a
    for block in schedule.blocks:
        begins = block.starts_s + (1.5 if block.index else 0.0)
        level = rng.gauss(0.0, noise) + (0.0 if block.arm == a else math.log(factor))
        told = (declared.experiment, block.index, block.arm)
        if block.index:
            records.append(BlockEvent(*told, "holding", block.starts_s))
            records.append(BlockEvent(*told, "drained", begins, held=3, held_s=2.5, hold_s=1.5))
        records.append(BlockEvent(*told, "reset", begins, forgotten=100))
        records.append(BlockEvent(*told, "began", begins))
        records.append(BlockEvent(*told, "washed_out", begins + declared.washout_s))
        for number in range(requests):
            at = begins + (block.ends_s - begins) * (number + rng.random()) / requests
            age = (at - begins) / (declared.block_s / 4)
            away = 0.0 if before == block.arm else carried * math.exp(-age)
            ttft = 0.2 * math.exp(level + away + rng.gauss(0.0, 0.3))
            records.append(_request(declared, block.index, block.arm, at, at - begins, ttft, rng))
        records.append(BlockEvent(*told, "ended", block.ends_s))
        before = block.arm
    records.append(ExperimentEnd(declared.experiment, schedule.blocks[-1].ends_s, "finished"))
    return records


def log(records: Sequence[Record]) -> Log:
    return log_of(records)


def declared(**changes: object) -> Declaration:
    return msgspec.structs.replace(DECLARED, **changes)


def _request(
    declaration: Declaration,
    block: int,
    arm: str,
    at: float,
    age_s: float,
    ttft: float,
    rng: random.Random,
) -> RequestLine:
    return RequestLine(
        declaration.experiment,
        block,
        arm,
        age_s < declaration.washout_s,
        at,
        "ok",
        ttft_s=ttft,
        e2e_s=ttft + 1.0,
        tpot_s=0.01,
        prompt_tokens=rng.randrange(500, 1_500),
        cached_tokens=256,
        output_tokens=rng.randrange(50, 150),
        worker=f"w{rng.randrange(3)}",
        unit=rng.randrange(2**32),
    )
