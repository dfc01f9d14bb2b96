"""Who is ahead by a figure, where all have done the same pieces of work, and how surely."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of a figure that was taken several times, in its unit."""

    mean: float
    spread: float  # standard deviation of one; 0 where there is only one
    error: float  # of the mean, likewise

    @property
    def deviations(self) -> float:
        """The mean in standard deviations of one; without a spread it is beyond any number."""
        if self.spread:
            return self.mean / self.spread
        return math.copysign(math.inf, self.mean) if self.mean else 0.0


@dataclass(frozen=True, slots=True)
class Lead:
    """What the next one in the order takes more."""

    ahead: str
    behind: str
    by: Estimate  # over the pieces of work, each under both


def estimate(values: Sequence[float]) -> Estimate:
    """Of at least one value. O(values)."""
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean, 0.0, 0.0)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    return Estimate(mean, spread, spread / math.sqrt(count))


def ranked(figures: Mapping[str, Sequence[float]]) -> list[str]:
    """Names by the mean of their figures, the lowest first."""
    return sorted(figures, key=lambda name: estimate(figures[name]).mean)


def leads(figures: Mapping[str, Sequence[float]], order: Sequence[str]) -> list[Lead]:
    """Of each in `order` over the next. The n-th figures of all are of one piece of work.

    Raises ValueError if one has done more pieces than another.
    """
    return [
        Lead(
            ahead,
            behind,
            estimate([b - a for a, b in zip(figures[ahead], figures[behind], strict=True)]),
        )
        for ahead, behind in pairwise(order)
    ]
