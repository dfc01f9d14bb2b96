"""What a request has to keep to be a good one, and how many do."""

from collections.abc import Callable, Collection, Mapping, Sequence
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
    """Upper bounds in seconds by name: ttft and e2e, tpot, itl_p99.

    ttft and e2e count from the intended time; in a closed loop, which intends all at once and so
    has no such times, from the dispatch.
    """

    bounds_s: tuple[tuple[str, float], ...]
    open_loop: bool = True

    def met_by(self, record: RequestRecord) -> bool:
        """A failure never; a figure that an answer has not (one token has no TPOT) is met."""
        if not record.ok:
            return False
        measures = MEASURES if self.open_loop else _CLOSED
        for name, bound_s in self.bounds_s:
            value = measures[name](record)
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


def slo_of(words: Sequence[str], *, open_loop: bool = True) -> LatencyBounds | None:
    """`ttft:500 tpot:50`, in ms; None for no words. Raises ConfigError that names the word."""
    return LatencyBounds(bounds_of(words, MEASURES), open_loop) if words else None


def bounds_of(words: Sequence[str], names: Collection[str]) -> tuple[tuple[str, float], ...]:
    """What such words say of these names, in s. Raises ConfigError that names the word."""
    bounds: dict[str, float] = {}
    for word in words:
        name, _, number = word.partition(":")
        try:
            bound_s = float(number) / 1000.0
        except ValueError:
            bound_s = 0.0
        if name not in names or not bound_s > 0 or name in bounds:
            raise ConfigError(
                f"--goodput {word}: write NAME:MILLISECONDS, each name once, of {', '.join(names)}"
            )
        bounds[name] = bound_s
    return tuple(bounds.items())


def _itl_p99_s(record: RequestRecord) -> float | None:
    values = sorted(latency.itl_tokens_s(record))
    return percentile(values, 99) if values else None


MEASURES: Mapping[str, Callable[[RequestRecord], float | None]] = {
    "ttft": latency.response_ttft_s,
    "e2e": latency.response_e2e_s,
    "tpot": latency.tpot_s,
    "itl_p99": _itl_p99_s,
}
_CLOSED = {**MEASURES, "ttft": latency.ttft_s, "e2e": latency.e2e_s}
