"""How many retries there may be: a share of the requests, so that a failing fleet is not buried."""

from collections import deque

from radixgate.clock import Clock
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.observe.metrics import GatewayMetrics

WINDOW_S = 10
ALWAYS = 100  # retries within the window, whatever the traffic: a small one is always retried


class RetryBudget:
    """Reads the counters that are kept anyway, noted once a second: it costs a request nothing."""

    def __init__(
        self,
        ratio: float,
        metrics: GatewayMetrics,
        clock: Clock,
        deadlines: Deadlines,
        always: int = ALWAYS,
    ) -> None:
        """`ratio`: retries for each request. `always`: of the window, whatever the traffic."""
        self._always = always
        self._ratio = ratio
        self._metrics = metrics
        self._clock = clock
        self._noted: deque[tuple[int, int]] = deque([(0, 0)], maxlen=WINDOW_S)
        self.deadline = clock.now() + 1.0
        deadlines.watch(self)

    def change(self, ratio: float) -> None:
        """Another ratio holds from now on, also for the window that is under way."""
        self._ratio = ratio

    def allows(self) -> bool:
        """One more retry may be made. O(1)."""
        requests, retries = self._noted[0]
        made = self._metrics.retries - retries
        return made < max(self._always, self._ratio * (self._requests - requests))

    def on_deadline(self) -> None:
        """A second has passed: the oldest leaves the window."""
        self._noted.append((self._requests, self._metrics.retries))
        self.deadline = self._clock.now() + 1.0

    @property
    def _requests(self) -> int:
        metrics = self._metrics
        return metrics.attempts - metrics.retries - metrics.continuations
