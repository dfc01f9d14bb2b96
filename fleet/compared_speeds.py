"""The prefill speeds of the ready workers: one for all but those that are known to differ."""

import statistics
from collections.abc import Sequence

from radixgate.fleet.load_report import PrefillSpeed
from radixgate.fleet.relative_speed import TypicalSpeeds

# How often a worker is compared with its fellows, at most: it takes 0.15 ms among 1,000.
_COMPARED_EVERY_S = 5.0


class ComparedSpeeds:
    """In a column by the workers' places: the median of what is measured, times what a worker is
    known to differ by; None for one that has not shown any. Changes when one of them reports."""

    def __init__(self, workers: Sequence[PrefillSpeed]) -> None:
        self._workers = workers
        self._measured = [speed.tokens_per_s for speed in workers]
        self._relative = [speed.steps.relative for speed in workers]
        self._compared_at = [float("-inf")] * len(workers)
        self._typical: TypicalSpeeds | None = None  # made when the first is compared
        self.column: Sequence[float | None] = self._speeds()

    def heard(self, place: int, now: float) -> None:
        """This worker has a new report. O(1), and once in five seconds O(workers)."""
        speed = self._workers[place]
        first = (self._measured[place] is None) != (speed.tokens_per_s is None)
        self._measured[place] = speed.tokens_per_s
        compared = now - self._compared_at[place] >= _COMPARED_EVERY_S
        if compared:
            self._compared_at[place] = now
            speed.steps.settle(self._typical_speeds(), place, now)
        elif self._typical is not None:
            self._typical.enter(place, speed.steps.typical)
        self._relative[place] = speed.steps.relative
        if compared or first:  # the first, or it has begun anew
            self.column = self._speeds()

    def _typical_speeds(self) -> TypicalSpeeds:
        if self._typical is None:
            self._typical = TypicalSpeeds()
            for place, speed in enumerate(self._workers):
                self._typical.enter(place, speed.steps.typical)
        return self._typical

    def _speeds(self) -> Sequence[float | None]:
        known = list(filter(None, self._measured))
        usual = statistics.median(known) if known else 0.0
        return [
            usual * relative if measured else None
            for measured, relative in zip(self._measured, self._relative, strict=True)
        ]
