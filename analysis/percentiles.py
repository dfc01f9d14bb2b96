"""Percentiles and the few numbers that describe a set of measurements."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# A percentile q of n values rests on the n * (1 - q/100) values above it; below ten of them it is
# one outlier's word.
_VALUES_ABOVE = 10


@dataclass(frozen=True, slots=True)
class Spread:
    """How n measurements lie, in their own unit. An empty set has no Spread: it is None."""

    n: int
    mean: float
    std: float  # of the set itself: divided by n, as numpy's default
    min: float
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float
    max: float


def percentile(ordered: Sequence[float], q: float) -> float:
    """The q-th percentile (0 to 100) of values in rising order; O(1).

    Between two values it is their linear interpolation, `x[k] + f * (x[k+1] - x[k])` at
    `k + f = (n - 1) * q / 100`, which is what numpy does unless told otherwise.
    Raises ValueError if there are no values or q is out of range.
    """
    if not ordered:
        raise ValueError("no values, so no percentile")
    if not 0.0 <= q <= 100.0:
        raise ValueError(f"a percentile is from 0 to 100, not {q:g}")
    place = (len(ordered) - 1) * q / 100.0
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def spread_of(values: Iterable[float]) -> Spread | None:
    """Describe the values, or None if there are none; O(n log n)."""
    ordered = sorted(values)
    if not ordered:
        return None
    n = len(ordered)
    mean = math.fsum(ordered) / n
    return Spread(
        n=n,
        mean=mean,
        std=math.sqrt(math.fsum((value - mean) ** 2 for value in ordered) / n),
        min=ordered[0],
        p50=percentile(ordered, 50),
        p90=percentile(ordered, 90),
        p95=percentile(ordered, 95),
        p99=percentile(ordered, 99),
        p999=percentile(ordered, 99.9),
        max=ordered[-1],
    )


def values_needed(q: float) -> int:
    """How many values make the q-th percentile more than an outlier's word: 1,000 for P99."""
    if not 0.0 <= q < 100.0:
        raise ValueError(f"the highest value needs no count: q is below 100, not {q:g}")
    return round(_VALUES_ABOVE * 100.0 / (100.0 - q))
