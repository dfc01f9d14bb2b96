"""Which policy the fleet goes by: the gateway's own, an experiment's, and who listens to it."""

from radixgate.fleet.fleet import Fleet
from radixgate.gateway.experiments.overheard import Listener, Overheard
from radixgate.policies.base import Policy


class LivePolicy:
    """The one place from which the policy of a live fleet is changed."""

    def __init__(self, fleet: Fleet, own: Policy) -> None:
        self._fleet = fleet
        self._now = self.own = own
        self._listeners: tuple[Listener, ...] = ()

    @property
    def own_decides(self) -> bool:
        """No experiment acts, whoever listens."""
        return self._now is self.own

    def use(self, policy: Policy) -> None:
        """From the next choice on."""
        self._now = policy
        self._install()

    def revert(self) -> None:
        """Back to the gateway's own."""
        self.use(self.own)

    def change_own(self, policy: Policy) -> None:
        """The gateway has another one now; an experiment that acts keeps its turn."""
        decided = self.own_decides
        self.own = policy
        if decided:
            self.use(policy)

    def let_listen(self, listeners: tuple[Listener, ...]) -> None:
        """These and no others."""
        self._listeners = listeners
        self._install()

    def _install(self) -> None:
        overheard = Overheard(self._now, self._listeners) if self._listeners else self._now
        self._fleet.use_policy(overheard)
