"""Which policy the fleet goes by: the gateway's own, an experiment's, and who listens to it."""

from radixgate.fleet.fleet import Fleet
from radixgate.fleet.rule import RuledPolicy
from radixgate.gateway.choice.own_policy import let_decide
from radixgate.gateway.experiments.overheard import Hearer, Overheard


class LivePolicy:
    """The one place from which the policy of a live fleet is changed."""

    def __init__(self, fleet: Fleet, own: RuledPolicy) -> None:
        self._fleet = fleet
        self._now = self.own = own
        self._listeners: tuple[Hearer, ...] = ()

    @property
    def own_decides(self) -> bool:
        """No experiment acts, whoever listens."""
        return self._now is self.own

    def use(self, policy: RuledPolicy) -> None:
        """From the next choice on."""
        if self.own_decides:
            self.own = self.own.used()
        self._now = policy
        let_decide(self._fleet, policy)
        self._overhear()

    def revert(self) -> None:
        """Back to the gateway's own; harmless if that decides."""
        if not self.own_decides:
            self.use(self.own)

    def change_own(self, policy: RuledPolicy) -> None:
        """The gateway has another one now; an experiment that acts keeps its turn."""
        decided = self.own_decides
        self.own = policy
        if decided:
            self.use(policy)

    def let_listen(self, listeners: tuple[Hearer, ...]) -> None:
        """These and no others. The same policy decides, so that nothing is noted."""
        self._listeners = listeners
        self._overhear()

    def _overhear(self) -> None:
        policy = self._now.policy
        self._fleet.use_policy(Overheard(policy, self._listeners) if self._listeners else policy)
