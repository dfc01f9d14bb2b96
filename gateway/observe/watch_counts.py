"""How often what workers of ours tell by their watches could not be followed."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WatchCounts:
    """Of all workers together, as long as this process lives."""

    resyncs: Counter[str] = field(default_factory=Counter)  # of a worker's mirror, by cause
    faults: Counter[str] = field(default_factory=Counter)  # of ours in taking one, by watch
