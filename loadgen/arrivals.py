"""When requests are meant to be sent: a whole run's times before its first request."""

import math
import random
from itertools import accumulate, repeat

from radixgate.errors import ConfigError

ARRIVALS = ("poisson", "constant")


def arrival_times(
    kind: str, *, count: int, requests_per_s: float, rng: random.Random
) -> list[float]:
    """`count` intended times in seconds, rising from 0.

    Times add up, so a late send never pushes the later ones back. An infinite rate means all at
    once. Raises ConfigError for a rate that is not over 0 and for an unknown kind.
    """
    if not requests_per_s > 0:
        raise ConfigError(
            f"--request-rate must be over 0 (inf sends all at once), not {requests_per_s:g}"
        )
    if kind not in ARRIVALS:
        raise ConfigError(f"--arrival must be one of {', '.join(ARRIVALS)}, not {kind!r}")
    if math.isinf(requests_per_s):
        return [0.0] * count
    if kind == "constant":
        return [place / requests_per_s for place in range(count)]
    gaps = (rng.expovariate(requests_per_s) for _ in repeat(None, max(count - 1, 0)))
    return list(accumulate(gaps, initial=0.0))[:count]
