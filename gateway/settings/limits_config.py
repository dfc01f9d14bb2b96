"""Settings of how much the gateway takes at once, and of each tenant a minute."""

from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class LimitsConfig:
    """Knobs of concurrency and of rates, which are two things."""

    max_concurrent_requests: int = knob(
        -1, help="requests under way at once, each to its last byte; -1: any number"
    )
    queue_size: int = knob(
        100, help="requests that may wait for one under way to end; more are refused with 429"
    )
    queue_timeout_secs: float = knob(
        60.0, unit="s", help="longest wait in the queue; then the request is refused with 503"
    )
    tenant_requests_per_minute: float | None = knob(
        None, help="requests of a tenant without a limit of its own in the keys file; none: any"
    )
    tenant_tokens_per_minute: float | None = knob(
        None, help="prompt and generated tokens of such a tenant; none: any number"
    )

    def __post_init__(self) -> None:
        if self.max_concurrent_requests == 0 or self.max_concurrent_requests < -1:
            raise ConfigError(
                f"max_concurrent_requests is {self.max_concurrent_requests}, it must be over 0,"
                " or -1 for any number"
            )
        if self.queue_size < 0:
            raise ConfigError(f"queue_size is {self.queue_size}, it cannot be negative")
        if self.queue_timeout_secs <= 0:
            raise ConfigError(f"queue_timeout_secs is {self.queue_timeout_secs:g}, it must be > 0")
        for name in ("tenant_requests_per_minute", "tenant_tokens_per_minute"):
            limit = getattr(self, name)
            if limit is not None and limit <= 0:
                raise ConfigError(f"{name} is {limit:g}, it must be over 0")

    @property
    def bounds_concurrency(self) -> bool:
        return self.max_concurrent_requests > 0
