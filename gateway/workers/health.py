"""When a worker counts as well: some checks in a row must agree before its state changes."""

from dataclasses import dataclass

from radixgate.gateway.settings.gateway_config import GatewayConfig


@dataclass(frozen=True, slots=True)
class HealthRule:
    """How often a worker is checked, and how many results in a row are believed."""

    interval_s: float
    timeout_s: float
    failures: int
    successes: int
    startup_s: float  # how long a new worker's silence means that it loads

    @classmethod
    def of(cls, config: GatewayConfig) -> "HealthRule":
        return cls(
            config.health_check_interval_secs,
            config.health_check_timeout_secs,
            config.health_failure_threshold,
            config.health_success_threshold,
            config.worker_startup_timeout_secs,
        )


class Pulse:
    """The checks of one worker, read with hysteresis. It begins down: nothing is known of it."""

    def __init__(self, rule: HealthRule) -> None:
        self.rule = rule  # another one may be set; the next check goes by it
        self._failures = 0
        self._successes = 0
        self.up = False

    @property
    def lost(self) -> bool:
        """As many checks in a row have failed as are believed. One that has never been up is not
        lost by a single refused connection: it may be starting, as we are."""
        return self._failures >= self.rule.failures

    def succeeded(self) -> bool:
        """A check went well. True if this brings the worker up."""
        self._failures = 0
        self._successes += 1
        if self.up or self._successes < self.rule.successes:
            return False
        self.up = True
        return True

    def failed(self, *, refused: bool) -> bool:
        """A check failed. True if this takes the worker down; a refused connection does at once,
        as nothing but an absent process answers so."""
        self._successes = 0
        self._failures += 1
        if not self.up or (self._failures < self.rule.failures and not refused):
            return False
        self.up = False
        return True
