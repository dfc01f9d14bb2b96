"""When requests are meant to be sent: a whole run's times before its first request."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice, repeat

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError

# By the clock of the dataset (trace), or one step after the other (rl-step): see intended.py.
BY_DATASET = ("trace", "rl-step")
ARRIVALS = ("poisson", "constant", "gamma", "on-off", "ramp", *BY_DATASET)


@dataclass(frozen=True, slots=True)
class ArrivalConfig:
    """What the kinds of arrival can be told beside the rate, which is always the mean one."""

    burstiness: float = knob(
        1.0, help="gamma: shape of the gaps; 1 is Poisson, under 1 bursts, over 1 is more even"
    )
    on_s: float = knob(5.0, help="on-off: mean length of a burst", unit="s")
    off_s: float = knob(15.0, help="on-off: mean length of the calm between bursts", unit="s")
    off_share: float = knob(
        0.1, help="on-off: rate in the calm as a share of the mean rate, 0 to under 1"
    )
    ramp_from: float = knob(
        0.0, help="ramp: share of the last rate (--request-rate) at the first request"
    )
    trace_slowdown: float = knob(
        1.0,
        help="trace: its times are multiplied by this; under 1 is faster",
        flags=("--mooncake-slowdown-factor",),
    )
    rl_target: float = knob(
        1.0,
        help="rl-step: a step ends when this share of it is answered; the rest is given up and "
        "counts neither as offered nor as failed",
    )

    def __post_init__(self) -> None:
        for name in ("burstiness", "on_s", "off_s", "trace_slowdown"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise ConfigError(f"--{name.replace('_', '-')} must be over 0, not {value:g}")
        for name in ("off_share", "ramp_from"):
            value = getattr(self, name)
            if not 0.0 <= value < 1.0:
                raise ConfigError(
                    f"--{name.replace('_', '-')} must be from 0 to under 1, not {value:g}"
                )
        if not 0.0 < self.rl_target <= 1.0:
            raise ConfigError(f"--rl-target must be over 0 and at most 1, not {self.rl_target:g}")


def arrival_times(
    kind: str,
    *,
    count: int,
    requests_per_s: float,
    rng: random.Random,
    shape: ArrivalConfig | None = None,
) -> list[float]:
    """`count` intended times in seconds, rising from 0.

    Times add up, so a late send never pushes the later ones back. An infinite rate means all at
    once. Raises ConfigError for a rate that is not over 0 and for an unknown kind.
    """
    if not requests_per_s > 0:
        raise ConfigError(
            f"--request-rate must be over 0 (inf sends all at once), not {requests_per_s:g}"
        )
    if kind not in ARRIVALS or kind in BY_DATASET:
        known = ", ".join(name for name in ARRIVALS if name not in BY_DATASET)
        raise ConfigError(f"--arrival must be one of {known}, not {kind!r}")
    if math.isinf(requests_per_s):
        return [0.0] * count
    if kind == "constant":
        return [place / requests_per_s for place in range(count)]
    if kind == "ramp":
        return list(islice(_ramp(count, requests_per_s, rng, shape or ArrivalConfig()), count))
    gaps = _gaps(kind, requests_per_s, rng, shape or ArrivalConfig())
    return list(accumulate(islice(gaps, max(count - 1, 0)), initial=0.0))[:count]


def _gaps(
    kind: str, requests_per_s: float, rng: random.Random, shape: ArrivalConfig
) -> Iterator[float]:
    if kind == "gamma":
        scale_s = 1.0 / (requests_per_s * shape.burstiness)
        return (rng.gammavariate(shape.burstiness, scale_s) for _ in repeat(None))
    if kind == "on-off":
        return _on_off_gaps(requests_per_s, rng, shape)
    return (rng.expovariate(requests_per_s) for _ in repeat(None))


def _on_off_gaps(
    requests_per_s: float, rng: random.Random, shape: ArrivalConfig
) -> Iterator[float]:
    """A Poisson process whose rate changes between two values after exponential times.

    Unit-rate gaps are spent at the rate that holds, across the changes. The calm comes first.
    """
    calm_rate = shape.off_share * requests_per_s
    whole_s = shape.on_s + shape.off_s
    burst_rate = (requests_per_s * whole_s - calm_rate * shape.off_s) / shape.on_s
    phases = (
        phase
        for _ in repeat(None)
        for phase in (
            (calm_rate, rng.expovariate(1 / shape.off_s)),
            (burst_rate, rng.expovariate(1 / shape.on_s)),
        )
    )
    rate, left_s = next(phases)
    while True:
        due, gap_s = rng.expovariate(1.0), 0.0
        while due > rate * left_s:
            due -= rate * left_s
            gap_s += left_s
            rate, left_s = next(phases)
        left_s -= due / rate
        yield gap_s + due / rate


def _ramp(
    count: int, last_rate: float, rng: random.Random, shape: ArrivalConfig
) -> Iterator[float]:
    """Poisson with a rate that rises evenly, so that about `count` requests make up the ramp."""
    first_rate = shape.ramp_from * last_rate
    length_s = 2.0 * count / (first_rate + last_rate)
    slope = (last_rate - first_rate) / length_s
    due = 0.0
    while True:
        # Solves first_rate * t + slope * t^2 / 2 = due.
        yield (math.sqrt(first_rate * first_rate + 2.0 * slope * due) - first_rate) / slope
        due += rng.expovariate(1.0)
