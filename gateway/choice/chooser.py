"""The choice of a worker, as a request's attempts go through it."""

from collections.abc import Sequence
from typing import Protocol

from radixgate.fleet.fleet import Ask, Lease, Outcome


class Chooser(Protocol):
    """Leases a worker for each attempt: `WorkerChoice`, or what stands before it for a request."""

    def lease(self, ask: Ask, tried: Sequence[str], *, own_only: bool) -> Lease:
        """As `WorkerChoice.lease`."""
        ...

    def ended(self, lease: Lease, outcome: Outcome, *, busy: bool) -> None:
        """As `WorkerChoice.ended`."""
        ...

    def rest(self, worker_id: str, seconds: float) -> None:
        """As `WorkerChoice.rest`."""
        ...
