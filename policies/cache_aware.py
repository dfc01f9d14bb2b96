"""Where most of the prompt is cached, as long as that is worth the queue there."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from radixgate.configs.declare import knob
from radixgate.configs.ranges import check_finite
from radixgate.errors import ConfigError, NoWorkerAvailable
from radixgate.policies import cache_thresholds
from radixgate.policies.base import Candidates, Choice, Policy, RouteRequest
from radixgate.policies.cache_thresholds import CacheThresholds
from radixgate.policies.fewest import fewest
from radixgate.policies.popular_prefix import holders_of, is_scarce
from radixgate.policies.requests_there import UNREPORTED, reported_requests, requests_there
from radixgate.policies.session_homes import SessionHomes
from radixgate.policies.turns import Turns

# On an idle fleet a worker with the whole prompt may have so many requests more than another.
BASE_MARGIN = 4.0
# Among equal matches a session stays with its worker up to such a lead. The match counts whole
# blocks; the session's worker may hold a piece of the next one.
HOME_LEAD = 2


@dataclass(frozen=True, slots=True)
class CacheAwareConfig:
    """SGLang's knobs. All absent: the margin grows with the load; one given: SGLang's rule."""

    cache_threshold: float | None = knob(
        None,
        help="cache_aware: share of the prompt (0..1) above which a match counts as a hit; absent: "
        "0.3 if another of its thresholds is given",
    )
    balance_abs_threshold: int | None = knob(
        None,
        help="cache_aware: a hit is given up beyond so many requests more than the least busy "
        "worker; absent: 64 if another of its thresholds is given",
        unit="requests",
    )
    balance_rel_threshold: float | None = knob(
        None,
        help="cache_aware: and beyond so many times the requests of the least busy worker; absent: "
        "1.5 if another of its thresholds is given",
    )

    def __post_init__(self) -> None:
        check_finite(self)
        if self.cache_threshold is not None and not 0.0 <= self.cache_threshold <= 1.0:
            raise ConfigError(
                f"cache_threshold is {self.cache_threshold}, a share of the prompt is 0 to 1"
            )
        for name in ("balance_abs_threshold", "balance_rel_threshold"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ConfigError(f"{name} is {value}, it cannot be negative")


def cache_aware(config: CacheAwareConfig, rng: random.Random) -> Policy:
    """The policy the knobs ask for."""
    given = (
        config.cache_threshold,
        config.balance_abs_threshold,
        config.balance_rel_threshold,
    )
    if given == (None, None, None):
        return CacheAware(rng)
    share, difference, ratio = given
    return CacheThresholds(
        rng,
        cache_threshold=cache_thresholds.CACHE_THRESHOLD if share is None else share,
        balance_abs=cache_thresholds.BALANCE_ABS_THRESHOLD if difference is None else difference,
        balance_rel=cache_thresholds.BALANCE_REL_THRESHOLD if ratio is None else ratio,
    )


class Margins(msgspec.Struct, frozen=True):
    """Whose lead in requests over the least busy worker is within what their match earns."""

    cached: Sequence[int]
    requests: Sequence[int]
    least: int  # requests at the least busy one
    per_token: float  # what a cached token earns

    def warmest(self, most: int) -> Sequence[int]:
        """Of those with most cached, of which there is mostly one. O(candidates), 15 ns each if
        so."""
        if self.cached.count(most) > 1:
            return [index for index in self.everyone() if self.cached[index] == most]
        index = self.cached.index(most)
        return [index] if self.requests[index] - self.least <= most * self.per_token else []

    def everyone(self) -> Sequence[int]:
        """Of all. O(candidates)."""
        least, per_token = self.least, self.per_token
        return [
            index
            for index, (tokens, count) in enumerate(zip(self.cached, self.requests, strict=True))
            if count - least <= tokens * per_token
        ]

    def scores(self, prompt_tokens: int) -> list[float]:
        """Tokens to compute; whose lead is beyond its margin stands behind all others."""
        within = frozenset(self.everyone())
        return [
            float(prompt_tokens - tokens if index in within else prompt_tokens + 1)
            for index, tokens in enumerate(self.cached)
        ]


class CacheAware:
    """The best match among the workers whose lead in requests is within what their match earns.

    A match earns its share of the prompt times (4 + the fleet's mean requests in flight). And a
    prefix that a share of the recent prompts begins with binds nobody before that share of the
    workers holds it. Among equals a session stays where it was, the others take turns.
    """

    def __init__(self, rng: random.Random) -> None:
        self._turns = Turns(rng)
        self._homes = SessionHomes()

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """O(candidates). Raises NoWorkerAvailable if there are none."""
        if not candidates.ids:
            raise NoWorkerAvailable("no worker can be chosen")
        cached = candidates.read_cached_tokens()
        requests = _requests(candidates)
        least, most = min(requests), max(cached)
        per_token = (BASE_MARGIN + sum(requests) / len(requests)) / max(1, request.prompt_tokens)
        within = Margins(cached, requests, least, per_token)
        finalists = within.warmest(most)
        held, branch = most, "hit" if most else "miss"
        if not finalists:
            others, branch = within.everyone(), "imbalance"
            held = max([cached[index] for index in others])
            finalists = [index for index in others if cached[index] == held]
        home = self._homes.of(request.session)
        index = None if home is None else self._at_home(home, candidates, requests, finalists)
        if index is None and held:
            holders = holders_of(cached, held, most)
            if is_scarce(candidates, finalists[0], holders):
                branch = "spread"  # to the least busy, whose lead is none
                finalists = fewest(requests, range(len(requests)))
        if index is None:
            index = self._least_busy(candidates, requests, finalists)
        self._homes.settle(request.session, candidates.ids[index])
        return Choice(index, branch, partial(within.scores, request.prompt_tokens))

    def _at_home(
        self,
        home: str,
        candidates: Candidates,
        requests: Sequence[int],
        finalists: Sequence[int],
    ) -> int | None:
        """The finalist where the session was last; None: it is no finalist, or busier by far."""
        most = min([requests[index] for index in finalists]) + HOME_LEAD
        for index in finalists:
            if candidates.ids[index] == home:
                return index if requests[index] <= most else None
        return None

    def _least_busy(
        self, candidates: Candidates, requests: Sequence[int], finalists: Sequence[int]
    ) -> int:
        """By requests, then by prompt tokens still to be computed, then by turn."""
        equals = fewest(requests, finalists)
        equals = fewest(candidates.uncached_tokens_in_flight, equals)
        chosen = self._turns.next(candidates.ids, equals) if len(equals) > 1 else equals[0]
        if len(finalists) > 1:
            self._turns.took(candidates.ids, chosen)
        return chosen


def _requests(candidates: Candidates) -> Sequence[int]:
    """Requests at each worker: ours, or all it reports if that is more and all of them report."""
    if UNREPORTED in reported_requests(candidates):
        return candidates.requests_in_flight
    return requests_there(candidates)
