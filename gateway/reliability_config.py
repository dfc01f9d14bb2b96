"""Settings of what the gateway makes of workers that fail, are busy, or come back."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ReliabilityConfig:
    """Knobs of the circuit breaker, the retry budget and the slow start."""

    cb_failure_threshold: int = knob(
        10, help="failed attempts in a row that open a worker's breaker: it is then given nothing"
    )
    cb_success_threshold: int = knob(3, help="good probes that close it again")
    cb_timeout_duration_secs: float = knob(
        60.0, unit="s", help="how long it stays open; then at most 3 requests at once probe"
    )
    retry_budget_ratio: float = knob(
        0.2,
        help="retries there may be for each request of the last 10 s; 100 may always be within it",
    )
    slow_start_secs: float = knob(
        0.0,
        unit="s",
        help="time in which a returned worker comes to its full share; 0: at once",
    )

    def __post_init__(self) -> None:
        for name in ("cb_failure_threshold", "cb_success_threshold", "cb_timeout_duration_secs"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name):g}, it must be over 0")
        for name in ("retry_budget_ratio", "slow_start_secs"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name):g}, it cannot be negative")
