"""Durations counted in buckets, for Prometheus."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HistogramCounts:
    """A histogram as it stood at one moment."""

    bounds: Sequence[float]  # seconds, ascending; a last bucket without a bound follows
    counts: Sequence[int]  # one a bucket, not cumulative
    total_s: float

    @property
    def observations(self) -> int:
        return sum(self.counts)

    def cumulative(self) -> list[tuple[str, int]]:
        """How many were at most so long, as Prometheus writes it."""
        labels = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        below, pairs = 0, []
        for label, count in zip(labels, self.counts, strict=True):
            below += count
            pairs.append((label, below))
        return pairs


class Histogram:
    """Grows with every observation; a snapshot is made again only after one."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._total_s = 0.0
        self._snapshot: HistogramCounts | None = None

    def observe(self, seconds: float) -> None:
        """O(log buckets)."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total_s += seconds
        self._snapshot = None

    def snapshot(self) -> HistogramCounts:
        if self._snapshot is None:
            self._snapshot = HistogramCounts(self._bounds, tuple(self._counts), self._total_s)
        return self._snapshot
