"""The choice of workers as one watched request sees it."""

from collections.abc import Sequence

from radixgate.fleet.fleet import Ask, Lease, Outcome
from radixgate.gateway.chooser import Chooser
from radixgate.gateway.experiments.watched_request import WatchedRequest


class WatchedChoice:
    """A `Chooser` that tells its request what was asked, leased and ended."""

    __slots__ = ("_choice", "_request")

    def __init__(self, choice: Chooser, request: WatchedRequest) -> None:
        self._choice = choice
        self._request = request

    def lease(self, ask: Ask, tried: Sequence[str], *, own_only: bool) -> Lease:
        """As the choice it stands before."""
        self._request.asked(ask)
        lease = self._choice.lease(ask, tried, own_only=own_only)
        self._request.leased(lease)
        return lease

    def ended(self, lease: Lease, outcome: Outcome, *, busy: bool) -> None:
        self._choice.ended(lease, outcome, busy=busy)
        self._request.outcome = outcome

    def rest(self, worker_id: str, seconds: float) -> None:
        self._choice.rest(worker_id, seconds)
