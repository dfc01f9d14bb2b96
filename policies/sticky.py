"""A session stays with its worker, as long as waiting there costs less than beginning anew."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_finite
from radixgate.errors import ConfigError, NoWorkerAvailable
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.queued_tokens import queued_tokens
from radixgate.policies.session_homes import SessionHomes
from radixgate.policies.turns import Turns

# A lead of so many requests is never too much, so that an idle fleet is not strict.
_FREE_LEAD = 4


@dataclass(frozen=True, slots=True)
class StickyConfig:
    """When a session leaves its worker, and how many are remembered."""

    sticky_break_margin: float = knob(
        2.0,
        help="sticky: a session moves when the queue at its worker is longer than the shortest one "
        "by more than so many times its prompt",
    )
    sticky_load_factor: float = knob(
        2.0,
        help="sticky: or when its worker has more than so many times the mean of the requests, and "
        "4 more",
    )
    sticky_sessions: int = knob(
        65_536, help="sticky: sessions remembered; the one not heard of for longest goes first"
    )

    def __post_init__(self) -> None:
        check_finite(self)
        if not self.sticky_break_margin >= 0.0:
            raise ConfigError(
                f"sticky_break_margin is {self.sticky_break_margin:g}, it cannot be negative"
            )
        if not self.sticky_load_factor >= 1.0:
            raise ConfigError(
                f"sticky_load_factor is {self.sticky_load_factor:g}, below 1 nobody could take the"
                " mean"
            )
        if self.sticky_sessions < 1:
            raise ConfigError(f"sticky_sessions is {self.sticky_sessions}, it must be over 0")


class Sticky:
    """By session, else by group; a request with neither goes to the shortest queue.

    So does the first request of a session, and one whose worker is gone or overloaded: the session
    then stays where that one went.
    """

    def __init__(self, config: StickyConfig, rng: random.Random) -> None:
        self._config = config
        self._turns = Turns(rng)
        self._homes = SessionHomes(config.sticky_sessions)

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        if not len(candidates):
            raise NoWorkerAvailable("no worker can be chosen")
        key = request.session or request.group
        queued = queued_tokens(candidates)
        home = self._homes.of(key)
        at_home = candidates.ids.index(home) if home in candidates.ids else None
        if at_home is not None and self._bears(request, candidates, queued, at_home):
            chosen, branch = at_home, "home"
        else:
            chosen = self._shortest(candidates, queued)
            branch = "new" if home is None else "gone" if at_home is None else "overloaded"
        self._homes.settle(key, candidates.ids[chosen])
        return Choice(chosen, branch, lambda: _scores(queued, chosen))

    def _bears(
        self, request: RouteRequest, candidates: Candidates, queued: Sequence[int], home: int
    ) -> bool:
        requests = candidates.requests_in_flight
        most = self._config.sticky_load_factor * sum(requests) / len(requests) + _FREE_LEAD
        behind = queued[home] - min(queued)
        return requests[home] <= most and (
            behind <= self._config.sticky_break_margin * max(1, request.prompt_tokens)
        )

    def _shortest(self, candidates: Candidates, queued: Sequence[int]) -> int:
        loads = list(zip(queued, candidates.requests_in_flight, strict=True))
        least = min(loads)
        equals = [index for index, load in enumerate(loads) if load == least]
        chosen = self._turns.next(candidates.ids, equals)
        self._turns.took(candidates.ids, chosen)
        return chosen


def _scores(queued: Sequence[int], chosen: int) -> list[float]:
    """Queued tokens; the chosen one stands before all others."""
    return [-1.0 if index == chosen else float(tokens) for index, tokens in enumerate(queued)]
