"""Workers that fail more than they may, though never often enough in a row to open a breaker.

They are set aside for a while, but never more than half of those that serve a model, and never the
last one: where many fail at once it is not they who are odd, and the rest would only be buried.
"""

from collections.abc import Collection, Sequence

from radixgate.clock import Clock
from radixgate.gateway.choice.breakers import Verdict
from radixgate.gateway.settings.reliability_config import ReliabilityConfig

# A worker that is set aside again soon after its return stays away so many times as long at most.
MOST_TIMES = 10


class _Record:
    """What a worker has made of its attempts since the first failure of this window."""

    __slots__ = ("attempts", "failures", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.attempts = 0
        self.failures = 0

    @property
    def rate(self) -> float:
        return self.failures / self.attempts


class _Ejection:
    __slots__ = ("times", "until")

    def __init__(self) -> None:
        self.until = 0.0
        self.times = 0  # in a row


class Outliers:
    """Holds a record only for workers that have failed lately: a sound fleet costs nothing."""

    def __init__(self, config: ReliabilityConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        # Both by worker, and to be read by others. Without records a success changes nothing;
        # without ejections nobody is, or was lately, set aside.
        self.records: dict[str, _Record] = {}
        self.ejections: dict[str, _Ejection] = {}  # the earliest first
        self.ejected_total = 0

    def change(self, config: ReliabilityConfig) -> None:
        """Judge by this from now on; who is set aside stays so."""
        self._config = config

    def ended(self, worker_id: str, verdict: Verdict) -> None:
        """Once for each attempt."""
        config = self._config
        record = self.records.get(worker_id)
        if verdict is Verdict.NEUTRAL or (record is None and verdict is Verdict.SUCCESS):
            return
        now = self._clock.now()
        if record is None or now - record.since > config.outlier_window_secs:
            if verdict is Verdict.SUCCESS:
                del self.records[worker_id]
                return
            record = self.records[worker_id] = _Record(now)
        record.attempts += 1
        record.failures += verdict is Verdict.FAILURE
        ratio = config.outlier_failure_ratio
        if record.attempts >= config.outlier_min_attempts and 0 < ratio <= record.rate:
            del self.records[worker_id]
            self._eject(worker_id, now)

    def among(self, workers: Sequence[str]) -> Collection[str]:
        """Who of these is set aside now: the first that were, up to half of them. O(ejections)."""
        now = self._clock.now()
        kept = now - self._config.outlier_window_secs
        for one in [one for one, was in self.ejections.items() if was.until < kept]:
            del self.ejections[one]
        away = [one for one in self.ejections if self.ejections[one].until > now]
        present = set(workers)
        return [one for one in away if one in present][: len(present) // 2]

    def is_ejected(self, worker_id: str) -> bool:
        """It may get requests all the same, where too few others are left."""
        ejection = self.ejections.get(worker_id)
        return ejection is not None and ejection.until > self._clock.now()

    def forget(self, worker_id: str) -> None:
        """The worker left, or another process answers at its address."""
        self.records.pop(worker_id, None)
        self.ejections.pop(worker_id, None)

    def _eject(self, worker_id: str, now: float) -> None:
        # Last in the row of those that are away, also if it was there before.
        ejection = self.ejections.pop(worker_id, None)
        if ejection is None or now - ejection.until > self._config.outlier_window_secs:
            ejection = _Ejection()
        ejection.times = min(ejection.times + 1, MOST_TIMES)
        ejection.until = now + ejection.times * self._config.outlier_ejection_secs
        self.ejections[worker_id] = ejection
        self.ejected_total += 1
