"""Settings of what the gateway makes of workers that fail, are busy, or come back."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ReliabilityConfig:
    """Knobs of the circuit breaker, of outliers, of the retry budget and the slow start."""

    cb_failure_threshold: int = knob(
        10, help="failed attempts in a row that open a worker's breaker: it is then given nothing"
    )
    cb_success_threshold: int = knob(3, help="good probes that close it again")
    cb_timeout_duration_secs: float = knob(
        60.0, unit="s", help="how long it stays open; then at most 3 requests at once probe"
    )
    outlier_failure_ratio: float = knob(
        0.5,
        help="share of failed attempts at which a worker is set aside, if others serve; 0: never",
    )
    outlier_min_attempts: int = knob(
        20, help="attempts since a worker's first failure before its share is judged"
    )
    outlier_window_secs: float = knob(
        30.0, unit="s", help="after so long a worker's failures are counted anew"
    )
    outlier_ejection_secs: float = knob(
        30.0, unit="s", help="time that a worker is set aside; each time in a row as much longer"
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
        for name in ("outlier_min_attempts", "outlier_window_secs", "outlier_ejection_secs"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name):g}, it must be over 0")
        if not 0 <= self.outlier_failure_ratio <= 1:
            raise ConfigError(
                f"outlier_failure_ratio is {self.outlier_failure_ratio:g}, it is a share: 0 to 1"
            )
        for name in ("retry_budget_ratio", "slow_start_secs"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name):g}, it cannot be negative")
