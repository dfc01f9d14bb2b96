"""A policy that decides and never sends: on books of its own placements, and on the real ones.

Its own books are a `Fleet` like the live one, in which every looked-at request is leased where the
policy puts it, for as long as it really runs. They know nothing of what workers report, as that is
of what A did: load is the shadow's own, caches are what its placements would have left.
"""

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from radixgate.analysis.experiments.records import ShadowDecision
from radixgate.analysis.experiments.schedule import bucket_of, share_of
from radixgate.clock import Clock
from radixgate.errors import RadixgateError
from radixgate.fleet.fleet import Ask, Fleet, FleetConfig, Lease, Outcome
from radixgate.gateway.experiments.loads import Loads
from radixgate.gateway.experiments.logbook import Logbook
from radixgate.gateway.experiments.units import UnitOf
from radixgate.log import fields
from radixgate.policies.base import Candidates, Policy, RouteRequest

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What the policy would do with a request on the real books."""

    worker: str
    cached_tokens: int


@dataclass(slots=True)
class ShadowSums:
    """Sums over all decisions."""

    decisions: int = 0
    agreed: int = 0  # on its own books
    agreed_actual: int = 0  # on the real ones
    cached_a: int = 0  # predicted tokens
    cached_b: int = 0
    cached_b_actual: int = 0
    imbalance_a: float = 0.0
    imbalance_b: float = 0.0
    undecided: int = 0  # no worker of its books was ready, or the policy failed


class Shadow:
    """One policy beside the live one. What it costs a looked-at request is two choices of B's.

    `overhear` is called inside the live choice, `placed` right after it; nothing comes between.
    """

    def __init__(
        self,
        logbook: Logbook,
        make_policy: Callable[[], Policy],
        unit_of: UnitOf,
        config: FleetConfig,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self.tally = ShadowSums()
        self.logbook = logbook
        self._share = logbook.declaration.share_b or 1.0
        self._unit_of = unit_of
        self._beside = make_policy()  # decides on the real books
        self._books = Fleet(make_policy(), clock, rng, config)
        self._workers = 0
        self._opinion: _Opinion | None = None
        self._loads_a = Loads()
        self._loads_b = Loads()

    def looks_at(self, request: Ask | RouteRequest) -> bool:
        """Whole sessions, so that what a conversation has cached is not torn apart. A request
        without one is looked at only where all are."""
        if self._share >= 1.0:
            return True
        unit = self._unit_of(request)
        return unit is not None and share_of(self.logbook.salt, unit) < self._share

    def overhear(self, request: RouteRequest, candidates: Candidates) -> None:
        """What would B choose of these? Raises nothing."""
        self._opinion = None
        if not self.looks_at(request):
            return
        try:
            index = self._beside.choose(request, candidates).index
            cached = candidates.read_cached_tokens()[index]
        except Exception:
            self._failed()
        else:
            self._opinion = _Opinion(candidates.ids[index], cached)

    def placed(self, ask: Ask, lease: Lease) -> "ShadowLease | None":
        """A has placed it; None: it is not looked at, or B had nothing to say. Raises nothing."""
        opinion, self._opinion = self._opinion, None
        if not self.looks_at(ask):
            return None
        try:
            mine = self._books.lease(ask)
        except RadixgateError:
            self.tally.undecided += 1
            return None
        except Exception:
            self._failed()
            return None
        uncached_a = ask.prompt_tokens - lease.predicted_cached_tokens
        uncached_b = ask.prompt_tokens - mine.predicted_cached_tokens
        entries = (
            (self._loads_a, lease.worker.id, uncached_a),
            (self._loads_b, mine.worker.id, uncached_b),
        )
        shadow_lease = ShadowLease(mine, entries)
        self._note(ask, lease, mine, opinion)
        return shadow_lease

    def follow(self, fleet: Fleet) -> None:
        """Have the workers that the fleet has, in the same states. O(workers)."""
        views = {view.identity.id: view for view in fleet.workers()}
        for view in self._books.workers():
            real = views.get(view.identity.id)
            if real is None or real.identity.instance_id != view.identity.instance_id:
                self._books.remove(view.identity.id)
        for worker_id, view in views.items():
            mine = self._books.worker(worker_id)
            if mine is None:
                self._books.admit(replace(view.identity, reports_kv=False))
            if mine is None or mine.state is not view.state:
                self._books.set_state(worker_id, view.state)
        self._workers = len(views)

    def state(self) -> dict[str, object]:
        """As JSON for an admin; means are over decisions."""
        tally = self.tally
        count = tally.decisions or 1
        return {
            "decisions": tally.decisions,
            "undecided": tally.undecided,
            "agreement": tally.agreed / count,
            "agreement_on_actual_books": tally.agreed_actual / count,
            "predicted_cached_tokens_a": tally.cached_a,
            "predicted_cached_tokens_b": tally.cached_b,
            "predicted_cached_tokens_b_on_actual_books": tally.cached_b_actual,
            "mean_imbalance_a": tally.imbalance_a / count,
            "mean_imbalance_b": tally.imbalance_b / count,
        }

    def check(self) -> None:
        """Assert that its books are sound."""
        self._books.check()

    def _note(self, ask: Ask, lease: Lease, mine: Lease, opinion: _Opinion | None) -> None:
        tally, unit, workers = self.tally, self._unit_of(ask), self._workers
        imbalance_a = self._loads_a.imbalance(workers)
        imbalance_b = self._loads_b.imbalance(workers)
        tally.decisions += 1
        tally.agreed += lease.worker.id == mine.worker.id
        tally.cached_a += lease.predicted_cached_tokens
        tally.cached_b += mine.predicted_cached_tokens
        tally.imbalance_a += imbalance_a
        tally.imbalance_b += imbalance_b
        if opinion is not None:
            tally.agreed_actual += opinion.worker == lease.worker.id
            tally.cached_b_actual += opinion.cached_tokens
        self.logbook.note_decision(
            ShadowDecision(
                self.logbook.name,
                t_s=self.logbook.now_s(),
                chosen_a=lease.worker.id,
                chosen_b=mine.worker.id,
                chosen_b_actual=None if opinion is None else opinion.worker,
                prompt_tokens=ask.prompt_tokens,
                predicted_cached_a=lease.predicted_cached_tokens,
                predicted_cached_b=mine.predicted_cached_tokens,
                predicted_cached_b_actual=None if opinion is None else opinion.cached_tokens,
                imbalance_a=imbalance_a,
                imbalance_b=imbalance_b,
                unit=None if unit is None else bucket_of(self.logbook.salt, unit),
            )
        )

    def _failed(self) -> None:
        """A fault of the policy that is tried must not reach the request."""
        self.tally.undecided += 1
        if self.tally.undecided == 1:
            _log.exception("a shadow's policy failed", extra=fields(experiment=self.logbook.name))


class ShadowLease:
    """A `Shade`: it ends when the real request does."""

    def __init__(self, lease: Lease, entries: Sequence[tuple[Loads, str, int]]) -> None:
        """`entries`: loads, worker and uncached tokens, of each side."""
        self._lease = lease
        self._entries = tuple(entries)
        for loads, worker, tokens in self._entries:
            loads.add(worker, tokens)

    def first_token(self) -> None:
        self._lease.first_output()
        self._compute_no_more()

    def over(self) -> None:
        self._compute_no_more()
        self._lease.close(Outcome.OK)

    def _compute_no_more(self) -> None:
        entries, self._entries = self._entries, ()
        for loads, worker, tokens in entries:
            loads.take(worker, tokens)
