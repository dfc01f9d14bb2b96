"""Which workers a further attempt may go to, before the policy chooses among them."""

from collections.abc import Sequence

from radixgate.errors import NoWorkerAvailable
from radixgate.fleet.fleet import Ask, Fleet, Lease


class WorkerChoice:
    """Leases a worker for each attempt of a request."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def lease(self, ask: Ask, tried: Sequence[str], *, own_only: bool) -> Lease:
        """A worker not tried before, while there is one; after that, any that is ready.

        `own_only`: the answer has begun at a worker of ours, and no foreign one can go on from its
        tokens. Raises as `Fleet.lease`.
        """
        if not tried:
            return self._fleet.lease(ask)
        never = self._foreign() if own_only else ()
        try:
            return self._fleet.lease(ask, (*tried, *never))
        except NoWorkerAvailable:
            return self._fleet.lease(ask, never)

    def _foreign(self) -> Sequence[str]:
        views = self._fleet.workers()
        return [view.identity.id for view in views if view.identity.kind == "http"]
