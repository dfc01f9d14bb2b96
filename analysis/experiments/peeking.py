"""Looking at an experiment while it runs, without fooling oneself."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from radixgate.analysis.intervals import Interval

# The sequence rests on the differences' mean being nearly normal; before so many it is not.
FEWEST_PAIRS = 10


@dataclass(frozen=True, slots=True)
class Peek:
    """After `pairs` pairs: an interval that holds at every look together, and p-values likewise."""

    pairs: int
    estimate: float
    interval: Interval  # at 1 - alpha over all looks
    always_valid_p: float  # of the mixture sequential test; never rises again


def confidence_sequence(
    differences: Sequence[float], planned: int, alpha: float = 0.05
) -> list[Peek]:
    """A look after each pair from the tenth on; [] for fewer.

    The asymptotic confidence sequence `mean +- s sqrt(2 (n r2 + 1) / (n^2 r2) ln(sqrt(n r2 + 1) /
    alpha))`, tightest at `planned` pairs by `r2 = (-2 ln alpha + ln(-2 ln alpha + 1)) / planned`.
    The p-value is the mixture sequential probability ratio's, its normal prior as wide as the
    interval at `planned`: with V = s^2 / n and t2 the prior's variance,
    `1 / (sqrt(V / (V + t2)) exp(t2 mean^2 / (2 V (V + t2))))`, or the least so far. O(n).
    """
    looks: list[Peek] = []
    least_p = 1.0
    log_alpha = -2.0 * math.log(alpha)
    rho2 = (log_alpha + math.log(log_alpha + 1.0)) / max(planned, FEWEST_PAIRS)
    for n in range(FEWEST_PAIRS, len(differences) + 1):
        seen = differences[:n]
        mean = math.fsum(seen) / n
        variance = math.fsum((value - mean) ** 2 for value in seen) / (n - 1)
        spread = math.sqrt(variance)
        grown = n * rho2 + 1.0
        reach = spread * math.sqrt(
            2.0 * grown / (n * n * rho2) * math.log(math.sqrt(grown) / alpha)
        )
        prior = variance * rho2
        least_p = min(least_p, _mixture_p(mean, variance / n, prior))
        looks.append(Peek(n, mean, Interval(mean - reach, mean + reach), least_p))
    return looks


def _mixture_p(mean: float, variance: float, prior: float) -> float:
    if variance <= 0.0:
        return 1.0 if mean == 0.0 else 0.0
    exponent = prior * mean * mean / (2.0 * variance * (variance + prior))
    log_ratio = 0.5 * math.log(variance / (variance + prior)) + exponent
    return min(1.0, math.exp(-log_ratio))
