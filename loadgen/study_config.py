"""Several runs in one: a sweep over rates, and a search for the highest good one."""

import math
from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class StudyConfig:
    """Runs at several rates. Without `flush_cache` each run has prompts of its own."""

    sweep: tuple[float, ...] = knob((), help="measure each of these rates", unit="sessions/s")
    find_goodput: bool = knob(
        False, help="search the highest rate at which --goodput is attained, by Wilson's interval"
    )
    search_from: float = knob(1.0, help="the search's first rate", unit="sessions/s")
    search_to: float = knob(256.0, help="and the highest it tries", unit="sessions/s")
    search_attainment: float = knob(0.95, help="share of the offered requests that must be good")
    search_precision: float = knob(
        0.05, help="the search ends when the rate that fails is this much over the one that holds"
    )
    search_repeats: int = knob(3, help="runs at a rate whose interval does not decide, at most")

    def __post_init__(self) -> None:
        if self.sweep and self.find_goodput:
            raise ConfigError("--sweep and --find-goodput: give one of them")
        for rate in (*self.sweep, self.search_from, self.search_to, self.search_precision):
            if not (rate > 0 and math.isfinite(rate)):
                raise ConfigError(f"rates and the precision must be over 0 and finite: {rate:g}")
        if self.search_from > self.search_to:
            raise ConfigError(
                f"--search-from {self.search_from:g} is over --search-to {self.search_to:g}"
            )
        if not 0.0 < self.search_attainment < 1.0:
            raise ConfigError(
                f"--search-attainment must be between 0 and 1, not {self.search_attainment:g}"
            )
        if self.search_repeats < 1:
            raise ConfigError(f"--search-repeats must be at least 1, not {self.search_repeats}")
