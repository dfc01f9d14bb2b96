"""The choice of workers for one request, with somebody who listens."""

from collections.abc import Sequence
from typing import Protocol

from radixgate.fleet.fleet import Ask, Lease, Outcome
from radixgate.gateway.choice.chooser import Chooser


class ChoiceListener(Protocol):
    """Hears of the attempts of its request."""

    def asked(self, ask: Ask) -> None:
        """A worker is about to be chosen, once for each attempt."""
        ...

    def leased(self, lease: Lease) -> None: ...

    def attempt_ended(self, lease: Lease, outcome: Outcome) -> None: ...


class ToldChoice:
    """A `Chooser` that tells a listener what was asked, leased and ended."""

    __slots__ = ("_choice", "_listener")

    def __init__(self, choice: Chooser, listener: ChoiceListener) -> None:
        self._choice = choice
        self._listener = listener

    def lease(self, ask: Ask, tried: Sequence[str], *, own_only: bool) -> Lease:
        """As the choice it stands before."""
        self._listener.asked(ask)
        lease = self._choice.lease(ask, tried, own_only=own_only)
        try:
            self._listener.leased(lease)
        except Exception:
            # Who asked never had it, and cannot give it back.
            lease.close(Outcome.REFUSED)
            self._choice.ended(lease, Outcome.REFUSED, busy=False)
            raise
        return lease

    def ended(self, lease: Lease, outcome: Outcome, *, busy: bool) -> None:
        self._choice.ended(lease, outcome, busy=busy)
        self._listener.attempt_ended(lease, outcome)

    def rest(self, worker_id: str, seconds: float) -> None:
        self._choice.rest(worker_id, seconds)
