"""The search for the highest rate at which an objective is kept."""

import math
from collections import defaultdict
from dataclasses import dataclass

from radixgate.analysis.intervals import Interval, wilson


@dataclass(frozen=True, slots=True)
class Probe:
    """All measurements at one rate together."""

    rate: float
    good: int
    offered: int
    runs: int
    interval: Interval  # Wilson's, of good / offered
    holds: bool | None  # None: more runs are needed
    certain: bool  # False: the interval holds the target; the share itself decided


class GoodputSearch:
    """Doubles from `low` to `high` until the objective is missed, then halves the ratio.

    A rate holds if Wilson's interval of the attainment lies at or above `target`, and fails if it
    lies below. One that does neither is measured again, `repeats` times in all; then the share
    decides.
    """

    def __init__(
        self, low: float, high: float, *, target: float, precision: float, repeats: int
    ) -> None:
        self._low, self._high = low, high
        self._target, self._precision, self._repeats = target, precision, repeats
        self._counts: dict[float, list[tuple[int, int]]] = defaultdict(list)
        self._rate: float | None = low
        self.holds: float | None = None  # the highest rate that did; None: none yet
        self.fails: float | None = None  # the lowest rate that did not

    def next_rate(self) -> float | None:
        """What to measure now; None: the search is over."""
        return self._rate

    def note(self, good: int, offered: int) -> Probe:
        """The outcome of a run at `next_rate()`. Raises ValueError if there was none."""
        rate = self._rate
        if rate is None:
            raise ValueError("the search is over")
        self._counts[rate].append((good, offered))
        probe = self.probe(rate)
        if probe.holds is None:
            return probe
        if probe.holds:
            self.holds = rate
        else:
            self.fails = rate
        self._rate = self._after()
        return probe

    def probe(self, rate: float) -> Probe:
        """What is known of a rate."""
        counts = self._counts[rate]
        good, offered = sum(g for g, _ in counts), sum(o for _, o in counts)
        interval = wilson(good, offered)
        above, below = interval.low >= self._target, interval.high < self._target
        holds: bool | None = above if above or below else None
        if holds is None and len(counts) >= self._repeats:
            holds = offered > 0 and good / offered >= self._target
        return Probe(rate, good, offered, len(counts), interval, holds, above or below)

    def _after(self) -> float | None:
        if self.holds is None:
            return None  # the lowest rate already fails
        if self.fails is None:
            return None if self.holds >= self._high else min(2.0 * self.holds, self._high)
        if self.fails / self.holds <= 1.0 + self._precision:
            return None
        return float(f"{math.sqrt(self.holds * self.fails):.4g}")
