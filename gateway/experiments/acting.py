"""An experiment that places requests: its plan, its guardrails, and the requests it answers for."""

import logging
from collections.abc import Callable
from typing import Literal

from radixgate.analysis.experiments.records import ExperimentEnd, GuardrailTrip
from radixgate.gateway.experiments.guard import Guard, Trip
from radixgate.gateway.experiments.logbook import Logbook
from radixgate.gateway.experiments.plan import Plan
from radixgate.gateway.experiments.request_line import line_of_request, result_of
from radixgate.gateway.experiments.units import UnitOf
from radixgate.gateway.experiments.watched_request import WatchedRequest
from radixgate.log import fields

Reason = Literal["finished", "stopped", "guardrail", "failed"]

GUARD_EVERY_S = 1.0
# How long an experiment that is over waits for the answers of its last requests.
CLOSING_S = 60.0
_log = logging.getLogger(__name__)


class Acting:
    """Running until `stop`, or until its plan or a guardrail ends it; then closing, while requests
    of its dispatch are still answered; then over. The default policy is back once it closes."""

    def __init__(
        self,
        logbook: Logbook,
        plan: Plan,
        guard: Guard,
        unit_of: UnitOf,
        revert: Callable[[], None],
    ) -> None:
        """`revert` puts the gateway's own policy back; called once, before anybody held goes on."""
        self.logbook = logbook
        self.plan = plan
        self.guard = guard
        self.reason: Reason | None = None  # None: it runs
        self.detail = ""
        self.over = False  # its last line has been written
        self.trip: Trip | None = None
        self._unit_of = unit_of
        self._revert = revert
        # Begun and not ended. As many as the front door lets in.
        self._live: dict[WatchedRequest, None] = {}
        self._next_look_s = 0.0
        self._closing_since_s = 0.0

    @property
    def closing(self) -> bool:
        return self.reason is not None

    @property
    def in_flight(self) -> int:
        return len(self._live)

    def state(self) -> dict[str, object]:
        """Of its plan, as JSON for an admin."""
        return self.plan.state()

    def open(self) -> None:
        """Begin."""
        self.plan.open()

    # ------------------------------------------------------------ of requests

    def begun(self, request: WatchedRequest) -> None:
        """It is on its way to a worker."""
        if not self.closing:
            self._live[request] = None

    def dispatched(self, request: WatchedRequest) -> None:
        """It belongs to the arm whose turn it is now."""
        if request in self._live and not self.closing:
            assert request.ask is not None
            request.label = self.plan.label(request.ask)

    def ended(self, request: WatchedRequest) -> None:
        """Harmless for one that never began."""
        if request not in self._live:
            return
        del self._live[request]
        result = result_of(request)
        label = request.label
        if label is None and request.ask is not None and not self.closing:
            label = self.plan.label(request.ask)  # turned away: there was nobody to send it to
        if result is None or label is None or self.over:
            return
        line = line_of_request(self.logbook, request, label, result, self._unit_of)
        self.logbook.note_request(line)
        self.guard.add(label.arm, line)

    # ------------------------------------------------------------ of time

    def step(self) -> None:
        """Time has passed, or a request has ended. O(1) but once a second."""
        now_s = self.logbook.now_s()
        if self.over:
            return
        if self.closing:
            if not self._live or now_s - self._closing_since_s >= CLOSING_S:
                self._end(now_s)
            return
        self.plan.step()
        if self.plan.over:
            self.stop("finished")
        elif now_s >= self._next_look_s:
            self._next_look_s = now_s + GUARD_EVERY_S
            self._look(now_s)

    def stop(self, reason: Reason, detail: str = "") -> None:
        """Nothing more is dispatched for it. Later calls do nothing."""
        if self.closing:
            return
        self.reason, self.detail = reason, detail
        self._closing_since_s = self.logbook.now_s()
        self._revert()
        self.plan.close()
        _log.info(
            "experiment stops",
            extra=fields(experiment=self.logbook.name, reason=reason, detail=detail or "-"),
        )

    def abandon(self) -> None:
        """Write its last line now, whatever is still answered."""
        if not self.over:
            self._end(self.logbook.now_s())

    def _end(self, now_s: float) -> None:
        self.over = True
        assert self.reason is not None
        left = f"{len(self._live)} requests had not ended" if self._live else ""
        detail = "; ".join(filter(None, (self.detail, left)))
        self.logbook.end(ExperimentEnd(self.logbook.name, now_s, self.reason, detail))

    def _look(self, now_s: float) -> None:
        if not self.guard.rails:
            return
        waiting = [
            self.logbook.now_s() - self.logbook.at_s(request.dispatched_at)
            for request in self._live
            if request.label is not None
            and request.label.arm == 1
            and not request.label.washout
            and request.first_token_at is None
            and request.dispatched_at is not None
        ]
        trip = self.guard.tripped(waiting)
        if trip is None:
            return
        self.trip = trip
        rail = trip.guardrail
        block = self.plan.block
        self.logbook.note(
            GuardrailTrip(
                self.logbook.name,
                now_s,
                block,
                rail.name,
                rail.metric,
                trip.value,
                trip.limit,
                trip.requests,
            )
        )
        _log.warning(
            "guardrail passed: back to the gateway's own policy",
            extra=fields(
                experiment=self.logbook.name,
                guardrail=rail.name,
                value=round(trip.value, 6),
                limit=round(trip.limit, 6),
                requests=trip.requests,
            ),
        )
        self.stop("guardrail", f"{rail.metric} {trip.value:.6g} past {trip.limit:.6g}")
