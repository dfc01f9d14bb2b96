"""The effect of arm B over arm A on one metric."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from radixgate.analysis.experiments.blocks import Pair, outcomes
from radixgate.analysis.experiments.metrics import Metric
from radixgate.analysis.experiments.randomisation import PairedTest, paired_test
from radixgate.analysis.intervals import Interval


@dataclass(frozen=True, slots=True)
class Effect:
    """Of one metric."""

    as_ratio: bool  # `test` is of log ratios; else of differences
    a: float  # mean over the blocks
    b: float
    difference: float  # B - A, mean over the pairs, in the metric's unit
    test: PairedTest

    @property
    def relative(self) -> float | None:
        """B over A, less one; None: of a metric whose effect is a difference."""
        return math.expm1(self.test.estimate) if self.as_ratio else None

    @property
    def relative_interval(self) -> Interval | None:
        """95 %; None: the effect is a difference, or the interval endless."""
        found = self.test.interval
        if found is None or not self.as_ratio:
            return None
        return Interval(math.expm1(found.low), math.expm1(found.high))


def effect_of(pairs: Sequence[Pair], metric: Metric, washout_s: float) -> Effect | None:
    """None: no pair has the metric."""
    found = outcomes(pairs, metric, washout_s)
    steps = differences(pairs, metric, washout_s)
    if not steps:
        return None
    n = len(found)
    return Effect(
        as_ratio=metric.as_ratio,
        a=math.fsum(a for a, _ in found.values()) / n,
        b=math.fsum(b for _, b in found.values()) / n,
        difference=math.fsum(b - a for a, b in found.values()) / n,
        test=paired_test(steps),
    )


def differences(pairs: Sequence[Pair], metric: Metric, washout_s: float) -> list[float]:
    """B's outcome less A's, pair by pair: of logarithms where the effect is a ratio."""
    found = outcomes(pairs, metric, washout_s)
    steps = (metric.step(a, b) for a, b in found.values())
    return [step for step in steps if step is not None]


def holm(p_values: Sequence[float]) -> list[float]:
    """Each adjusted for the others: the k-th least times the number from it on, never falling."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [1.0] * len(p_values)
    worst = 0.0
    for rank, place in enumerate(order):
        worst = max(worst, min(1.0, (len(order) - rank) * p_values[place]))
        adjusted[place] = worst
    return adjusted
