"""A circuit breaker a worker: who fails again and again is given nothing, then a few probes."""

from collections.abc import Collection
from enum import StrEnum

from radixgate.clock import Clock
from radixgate.gateway.settings.reliability_config import ReliabilityConfig

MOST_PROBES = 3


class Verdict(StrEnum):
    """What an attempt says about its worker."""

    SUCCESS = "success"
    NEUTRAL = "neutral"  # a wrong request, a busy worker, a client that left: says nothing
    FAILURE = "failure"


class Breaker:
    """Of one worker that has failed lately. It opens on failures in a row, half-opens by time, and
    closes on good probes; one bad probe opens it anew."""

    __slots__ = ("failures", "open_until", "probes", "successes")

    def __init__(self) -> None:
        self.failures = 0  # in a row, while it is closed
        self.open_until: float | None = None  # None: it is closed
        self.probes = 0  # under way
        self.successes = 0  # of probes, since it was last open


class Breakers:
    """Holds a breaker only for workers whose last verdict was bad: a sound fleet costs nothing."""

    def __init__(self, config: ReliabilityConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        # By worker; to be read by others. Empty: a success would change nothing.
        self.failing: dict[str, Breaker] = {}

    def change(self, config: ReliabilityConfig) -> None:
        """Judge by this from now on. A breaker that is open or closed stays so."""
        self._config = config
        most = config.cb_failure_threshold
        for breaker in self.failing.values():
            opened = breaker.open_until is not None
            breaker.failures = most if opened else min(breaker.failures, most - 1)
            breaker.successes = min(breaker.successes, config.cb_success_threshold - 1)

    def barred(self) -> Collection[str]:
        """The workers that may be given nothing now. O(failing workers)."""
        if not self.failing:
            return ()
        now = self._clock.now()
        return [
            worker_id
            for worker_id, breaker in self.failing.items()
            if breaker.open_until is not None
            and (now < breaker.open_until or breaker.probes >= MOST_PROBES)
        ]

    def dispatched(self, worker_id: str) -> Breaker | None:
        """An attempt goes there. It is a probe if a breaker comes back: `ended` wants it."""
        breaker = self.failing.get(worker_id)
        if breaker is None or breaker.open_until is None:
            return None
        breaker.probes += 1
        return breaker

    def ended(self, worker_id: str, verdict: Verdict, probe: Breaker | None) -> None:
        """Once for each attempt, with what `dispatched` gave for it."""
        breaker = self.failing.get(worker_id)
        if probe is not None:
            probe.probes -= 1
            if probe is breaker:
                self._probed(worker_id, breaker, verdict)
            return
        if verdict is Verdict.NEUTRAL:
            return
        if breaker is None:
            if verdict is Verdict.SUCCESS:
                return
            breaker = self.failing[worker_id] = Breaker()
        if breaker.open_until is not None:
            return  # it began before the breaker opened, and is old news
        if verdict is Verdict.SUCCESS:
            del self.failing[worker_id]
            return
        breaker.failures += 1
        if breaker.failures >= self._config.cb_failure_threshold:
            self._open(breaker)

    def forget(self, worker_id: str) -> None:
        """The worker left, or another process answers at its address."""
        self.failing.pop(worker_id, None)

    def state_of(self, worker_id: str) -> str:
        """`closed`, `open` or `half_open`."""
        breaker = self.failing.get(worker_id)
        if breaker is None or breaker.open_until is None:
            return "closed"
        return "open" if self._clock.now() < breaker.open_until else "half_open"

    def check(self) -> None:
        """Assert that the counts are possible. O(failing workers)."""
        for breaker in self.failing.values():
            assert 0 <= breaker.probes <= MOST_PROBES
            assert 0 <= breaker.successes < self._config.cb_success_threshold
            assert (breaker.failures < self._config.cb_failure_threshold) == (
                breaker.open_until is None
            )

    def _probed(self, worker_id: str, breaker: Breaker, verdict: Verdict) -> None:
        if verdict is Verdict.FAILURE:
            self._open(breaker)
        elif verdict is Verdict.SUCCESS:
            breaker.successes += 1
            if breaker.successes >= self._config.cb_success_threshold:
                del self.failing[worker_id]

    def _open(self, breaker: Breaker) -> None:
        breaker.open_until = self._clock.now() + self._config.cb_timeout_duration_secs
        breaker.successes = 0
