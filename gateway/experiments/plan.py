"""What an acting experiment is made of: who gets which request, and when that changes."""

from dataclasses import dataclass
from typing import Protocol

from radixgate.fleet.fleet import Ask
from radixgate.gateway.experiments.watched_request import Label


@dataclass(slots=True)
class Switches:
    """What changes of the policy have cost so far."""

    count: int = 0
    capped: int = 0  # holds that ended before the fleet had drained
    held_requests: int = 0
    held_s: float = 0.0  # summed over them
    longest_hold_s: float = 0.0


class Plan(Protocol):
    """Decides for which arm a request counts, and sees to it that this arm's policy places it."""

    @property
    def over(self) -> bool:
        """It has run its course."""
        ...

    @property
    def block(self) -> int:
        """The number of the one that runs; -1: it has no blocks."""
        ...

    @property
    def switches(self) -> Switches | None:
        """None: it has no blocks."""
        ...

    def open(self) -> None:
        """Begin, now."""
        ...

    def step(self) -> None:
        """Time has passed, or a request has ended."""
        ...

    def label(self, ask: Ask) -> Label:
        """Of a request that is dispatched now."""
        ...

    def close(self) -> None:
        """Hold nobody any more. The policies are put back by others."""
        ...

    def state(self) -> dict[str, object]:
        """How it stands, as JSON for an admin."""
        ...
