"""What a simulated request has to keep to be a good one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from radixgate.analysis.slo import MEASURES, bounds_of
from radixgate.errors import ConfigError
from radixgate.loadgen.simulator.job import Job

_MEASURES: Mapping[str, Callable[[Job], float | None]] = {
    "ttft": lambda job: job.ttft_s,
    "e2e": lambda job: job.e2e_s,
    "tpot": lambda job: job.tpot_s,
}


@dataclass(frozen=True, slots=True)
class Objective:
    """Upper bounds in seconds by name."""

    bounds_s: tuple[tuple[str, float], ...]

    def met_by(self, job: Job) -> bool:
        """A figure that an answer has not (one token has no TPOT) is met."""
        for name, bound_s in self.bounds_s:
            value = _MEASURES[name](job)
            if value is not None and value > bound_s:
                return False
        return True

    def as_json(self) -> dict[str, float]:
        """In ms, as they are written."""
        return {name: 1000.0 * bound_s for name, bound_s in self.bounds_s}


def objective_of(words: Sequence[str]) -> Objective | None:
    """`ttft:2000 tpot:60`, in ms; None for no words. Raises ConfigError that names the word."""
    for name in (word.partition(":")[0] for word in words):
        if name in MEASURES and name not in _MEASURES:
            raise ConfigError(
                f"--goodput {name}: a simulation has no single tokens; use {', '.join(_MEASURES)}"
            )
    return Objective(bounds_of(words, _MEASURES)) if words else None
