"""When a failed attempt is worth another, and how long to wait before it."""

import random
from dataclasses import dataclass

from radixgate.gateway.settings.gateway_config import GatewayConfig

# Answers that another worker may well give better: it is busy, restarting, or broken. Any other
# status is the answer to the request and passes through.
RETRIABLE_STATUSES = frozenset((408, 429, 500, 502, 503, 504))
JITTER = 0.2


def is_busy(status: int) -> bool:
    """Of an error: the request was refused only for now, or as wrong: no sign of a fault."""
    return status < 500 or status == 503


@dataclass(frozen=True, slots=True)
class RetryRule:
    """At most `max_retries` further attempts, each after twice the wait of the one before."""

    max_retries: int
    initial_backoff_s: float
    max_backoff_s: float

    @classmethod
    def of(cls, config: GatewayConfig) -> "RetryRule":
        return cls(
            config.retry_max_retries,
            config.retry_initial_backoff_ms / 1000,
            config.retry_max_backoff_ms / 1000,
        )

    def backoff_s(self, failed: int, rng: random.Random) -> float | None:
        """Seconds to wait after `failed` attempts; None: no further one."""
        if failed > self.max_retries:
            return None
        wait = min(self.initial_backoff_s * 2.0 ** (failed - 1), self.max_backoff_s)
        return wait * rng.uniform(1.0 - JITTER, 1.0 + JITTER)
