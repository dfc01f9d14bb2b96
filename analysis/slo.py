"""What a request has to keep to be a good one, and how many do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from radixgate.analysis import latency
from radixgate.analysis.intervals import Interval, wilson
from radixgate.analysis.percentiles import percentile
from radixgate.analysis.records import ABANDONED, RequestRecord
from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Attainment:
    """How an objective was kept. Failures are misses; what the client gave up is not counted."""

    slo: Mapping[str, float]  # bounds in ms
    good: int
    offered: int
    share: float | None  # good / offered; None: nothing was offered
    interval: Interval  # Wilson's, of the share
    goodput: float  # good requests a second of the run


@dataclass(frozen=True, slots=True)
class LatencyBounds:
    """Upper bounds in seconds by name: ttft and e2e from the intended time, tpot, itl_p99."""

    bounds_s: tuple[tuple[str, float], ...]

    def met_by(self, record: RequestRecord) -> bool:
        """A failure never; a figure that an answer has not (one token has no TPOT) is met."""
        if not record.ok:
            return False
        for name, bound_s in self.bounds_s:
            value = MEASURES[name](record)
            if value is not None and value > bound_s:
                return False
        return True

    def attainment(self, records: Sequence[RequestRecord], duration_s: float) -> Attainment:
        """Over all that was offered."""
        offered = [record for record in records if record.failure != ABANDONED]
        good = sum(map(self.met_by, offered))
        return Attainment(
            slo={name: 1000.0 * bound_s for name, bound_s in self.bounds_s},
            good=good,
            offered=len(offered),
            share=good / len(offered) if offered else None,
            interval=wilson(good, len(offered)),
            goodput=latency.rate(good, duration_s),
        )


def slo_of(words: Sequence[str]) -> LatencyBounds | None:
    """`ttft:500 tpot:50`, in ms; None for no words. Raises ConfigError that names the word."""
    if not words:
        return None
    bounds: dict[str, float] = {}
    for word in words:
        name, _, number = word.partition(":")
        try:
            bound_s = float(number) / 1000.0
        except ValueError:
            bound_s = 0.0
        if name not in MEASURES or not bound_s > 0 or name in bounds:
            raise ConfigError(
                f"--goodput {word}: write NAME:MILLISECONDS, each name once, "
                f"of {', '.join(MEASURES)}"
            )
        bounds[name] = bound_s
    return LatencyBounds(tuple(bounds.items()))


def _itl_p99_s(record: RequestRecord) -> float | None:
    values = sorted(latency.itl_tokens_s(record))
    return percentile(values, 99) if values else None


MEASURES: Mapping[str, Callable[[RequestRecord], float | None]] = {
    "ttft": latency.response_ttft_s,
    "e2e": latency.response_e2e_s,
    "tpot": latency.tpot_s,
    "itl_p99": _itl_p99_s,
}
