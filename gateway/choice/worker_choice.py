"""Which workers an attempt may go to before the policy chooses, and what its end says of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from radixgate.errors import NoWorkerAvailable
from radixgate.fleet.fleet import Ask, Fleet, Lease, Outcome, Rehearsal, WorkerState
from radixgate.gateway.choice.breakers import Breaker, Breakers, Verdict
from radixgate.gateway.choice.outliers import Outliers
from radixgate.gateway.choice.spared import Spared

_OK = Outcome.OK  # a member is looked up by a function call each time


class WorkerChoice:
    """Leases a worker for each attempt of a request."""

    def __init__(
        self,
        fleet: Fleet,
        breakers: Breakers,
        spared: Spared,
        outliers: Outliers | None = None,
    ) -> None:
        """`outliers`: None: nobody is one."""
        self._fleet = fleet
        self._served = fleet.served
        self._breakers = breakers
        self._spared = spared
        self._outliers = outliers
        self._probes: dict[Lease, Breaker] = {}
        # Where other processes dispatch: their state; None: closed, as far as they know.
        self.breaker_elsewhere: Callable[[str], str | None] = lambda worker_id: None

    def lease(self, ask: Ask, tried: Sequence[str], *, own_only: bool) -> Lease:
        """A worker neither tried before nor to be spared, while there is one; then one that is
        only not tried before; after that, any that is ready and not barred by its breaker.

        `own_only`: the answer has begun at a worker of ours, and no foreign one can go on from its
        tokens. Raises as `Fleet.lease`.
        """
        # Nobody has failed lately, or is to be spared: most of the time.
        held_back, outliers = self._spared, self._outliers
        well = not (self._breakers.failing or held_back.resting or held_back.warming) and (
            outliers is None or not outliers.ejections
        )
        anyone = not ask.adapters and ask.only is None
        if ask.foreign and anyone and self._served.own:
            anyone = ask.model not in self._served.own
        if well and not tried and anyone:
            return self._fleet.lease(ask)
        unable = () if anyone else tuple(self._unable(ask))
        barred, spared = self._breakers.barred(), self._left_out(ask, unable)
        never = (*barred, *unable)
        if own_only:
            never += self._of_kind("http")
        wishes = [(*tried, *spared)] if spared else []
        if tried:
            wishes.append(tuple(tried))
        for wish in wishes:
            try:
                return self._noted(self._fleet.lease(ask, (*never, *wish)))
            except NoWorkerAvailable:
                continue
        return self._noted(self._fleet.lease(ask, never))

    def rehearse(self, ask: Ask) -> tuple[Rehearsal, Mapping[str, str]]:
        """What the first `lease` for it would choose now, without one; and of the ready workers
        that were left out, the reason by id. Raises as `Fleet.rehearse`.
        """
        with self._spared.asked_only():
            unable = self._unable(ask)
            barred, spared = self._breakers.barred(), self._left_out(ask, unable)
            reasons = dict.fromkeys(barred, "its breaker is open") | unable
            if spared:
                wish = {
                    **dict.fromkeys(spared, "it rests, has just returned, or fails too often"),
                    **reasons,
                }
                with suppress(NoWorkerAvailable):
                    return self._fleet.rehearse(ask, wish), wish
            return self._fleet.rehearse(ask, reasons), reasons

    def ended(self, lease: Lease, outcome: Outcome, *, busy: bool) -> None:
        """An attempt is over. `busy`: it failed only because the worker is full for now."""
        outliers = self._outliers
        suspects = self._probes or self._breakers.failing or (outliers and outliers.records)
        if outcome is _OK and not suspects:
            return
        verdict = Verdict.NEUTRAL
        if outcome is _OK:
            verdict = Verdict.SUCCESS
        elif outcome is Outcome.FAILED and not busy:
            verdict = Verdict.FAILURE
        probe = self._probes.pop(lease, None) if self._probes else None
        self._breakers.ended(lease.worker.id, verdict, probe)
        if outliers is not None:
            outliers.ended(lease.worker.id, verdict)

    def rest(self, worker_id: str, seconds: float) -> None:
        """The worker wants to be left alone for so long."""
        self._spared.rest(worker_id, seconds)

    def wait_s(self, ask: Ask) -> float:
        """How long everybody who could answer wants to be left alone; 0: somebody does not.

        O(workers) while anybody does.
        """
        if not self._spared.resting:
            return 0.0
        able = self._ready_but(self._unable(ask), ask)
        return min(map(self._spared.rest_s, able), default=0.0)

    def breaker_of(self, worker_id: str) -> str:
        """`closed`, `open`, `half_open`, or `ejected`: closed, and set aside as an outlier."""
        state = self.breaker_elsewhere(worker_id) or self._breakers.state_of(worker_id)
        if state == "closed" and self._outliers is not None:
            return "ejected" if self._outliers.is_ejected(worker_id) else state
        return state

    def came(self, worker_id: str, *, returned: bool) -> None:
        """The worker is ready; `returned`: after it was down. What was held against it is not any
        more."""
        self.left(worker_id)
        if returned:
            self._spared.returned(worker_id)

    def left(self, worker_id: str) -> None:
        self._breakers.forget(worker_id)
        self._spared.forget(worker_id)
        if self._outliers is not None:
            self._outliers.forget(worker_id)

    def check(self) -> None:
        """Assert that each probe under way is counted once. O(failing workers)."""
        self._breakers.check()
        for breaker in set(self._probes.values()):
            held = sum(other is breaker for other in self._probes.values())
            assert breaker.probes == held, f"{breaker.probes} probes, {held} leases"

    def _noted(self, lease: Lease) -> Lease:
        probe = self._breakers.dispatched(lease.worker.id)
        if probe is not None:
            self._probes[lease] = probe
        return lease

    def _left_out(self, ask: Ask, unable: Collection[str]) -> Collection[str]:
        """Whom to spare this time, and who is an outlier among those that could serve."""
        spared = self._spared.drawn()
        if self._outliers is None or not self._outliers.ejections:
            return spared
        able = self._ready_but({*unable, *self._breakers.barred()}, ask)
        return {*spared, *self._outliers.among(able)}

    def _ready_but(self, out: Collection[str], ask: Ask) -> Sequence[str]:
        """O(workers)."""
        return [
            record.identity.id
            for record in self._fleet.records()
            if record.state is WorkerState.READY
            and record.identity.id not in out
            and record.identity.serves(ask.model)
        ]

    def _unable(self, ask: Ask) -> dict[str, str]:
        """Who could not answer if it was asked, and why not. O(workers), unless all could."""
        reasons: dict[str, str] = {}
        if ask.foreign and ask.model in self._served.own:
            why = "it is one of ours, and the request has not been read for those"
            reasons |= dict.fromkeys(self._of_kind("grpc"), why)
        if ask.adapters:
            able = self._served.having(ask.model or "", ask.adapters)
            reasons |= dict.fromkeys(self._all_but(able), "it does not list the adapter")
        if ask.only is not None:
            why = "it has not stored what the request goes on from"
            reasons |= dict.fromkeys(self._all_but((ask.only,)), why)
        return reasons

    def _all_but(self, able: Collection[str]) -> Sequence[str]:
        ids = [record.identity.id for record in self._fleet.records()]
        return [one for one in ids if one not in able]

    def _of_kind(self, kind: str) -> tuple[str, ...]:
        records = self._fleet.records()
        return tuple([one.identity.id for one in records if one.identity.kind == kind])
