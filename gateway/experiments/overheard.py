"""The live policy, whose questions shadows are asked too."""

import copy
from collections.abc import Sequence
from typing import Protocol

from radixgate.policies.base import Candidates, Choice, Policy, RouteRequest


class Hearer(Protocol):
    """Hears what the live policy is asked."""

    def overhear(self, request: RouteRequest, candidates: Candidates) -> None:
        """Raises nothing."""
        ...


class Overheard:
    """A `Policy` that chooses as the live one does."""

    def __init__(self, policy: Policy, listeners: Sequence[Hearer]) -> None:
        self._policy = policy
        self._listeners = tuple(listeners)

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        for listener in self._listeners:
            listener.overhear(request, candidates)
        return self._policy.choose(request, candidates)

    def __deepcopy__(self, memo: dict[int, object]) -> Policy:
        """Who asks a copy what would be chosen asks the policy alone."""
        return copy.deepcopy(self._policy, memo)
