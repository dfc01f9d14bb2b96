"""The ready workers of one model: in columns, what is in flight and what they last reported."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec

from radixgate.errors import NoWorkerAvailable
from radixgate.fleet.compared_speeds import ComparedSpeeds
from radixgate.fleet.load_report import REPORT_MAX_AGE_S, LoadReport
from radixgate.fleet.ready_order import ReadyOrder
from radixgate.fleet.worker_record import InFlight, WorkerRecord
from radixgate.policies.requests_there import UNREPORTED


class Told(msgspec.Struct, frozen=True):
    """What the ready workers last reported, in columns that never change: decisions share them."""

    running: Sequence[int | None]
    waiting: Sequence[int | None]
    queued: Sequence[int | None]
    queued_elsewhere: Sequence[int | None]
    kv_share: Sequence[float | None]
    requests: Sequence[int]  # running and waiting; UNREPORTED where there is no report
    speeds: Sequence[float | None]
    sent_elsewhere: bool  # some of what is queued was sent by others
    all_tell_kv: bool  # nobody's share is None


class ReadyWorkers(ReadyOrder):
    """Kept between requests: a report changes one place of each column, which a request copies if
    none has since.

    Made anew when a worker becomes ready or is so no longer. Where a worker has not reported, or
    more than two seconds ago, a column holds None. What is in flight is as it was when this was
    made, until it takes charge.
    """

    def __init__(self, records: Sequence[WorkerRecord], now: float) -> None:
        super().__init__(records)
        self._places = {worker_id: place for place, worker_id in enumerate(self.ids)}
        nothing = [None] * len(records)
        self.running: list[int | None] = [*nothing]
        self.waiting: list[int | None] = [*nothing]
        self.queued: list[int | None] = [*nothing]  # uncached tokens that wait, of all gateways
        self.queued_elsewhere: list[int | None] = [*nothing]  # of those, not ours
        self.kv_share: list[float | None] = [*nothing]
        self._speeds = ComparedSpeeds([record.speed for record in records])
        # No report of the columns is older; the oldest may be younger than this.
        self._oldest = float("inf")
        self._told: Told | None = None  # None: to be copied anew
        self.in_flight = InFlight([record.in_flight for record in records])
        for place in range(len(records)):
            self._enter(place, now)
        # Now that reports which are too old count no more.
        self.in_flight.uncached[:] = [record.uncached_tokens_in_flight for record in records]

    @property
    def groups(self) -> Sequence["ReadyWorkers"]:
        """As those of `PickedWorkers`."""
        return (self,)

    def take_charge(self) -> None:
        """From now on leases count in these columns. Once of all that hold a record."""
        for place, record in enumerate(self.records):
            record.move(self.in_flight, place)

    def check(self) -> None:
        """Assert that the records count here. O(workers)."""
        for place, record in enumerate(self.records):
            assert record.counts is self.in_flight
            assert record.place == place
        self.in_flight.check()

    @property
    def speeds(self) -> Sequence[float | None]:
        """Measured, in tokens a second; one for all but those that are known to differ."""
        return self._speeds.column

    def heard(self, worker_id: str, now: float) -> None:
        """This worker's record has a new report; one that is not ready is ignored. O(1), and once
        in five seconds O(workers)."""
        place = self._places.get(worker_id)
        if place is None:
            return
        self._enter(place, now)
        self._speeds.heard(place, now)

    def told(self, now: float) -> Told:
        """The columns as they are now. O(1) where nobody has reported since it was asked for last,
        as of workers that never do; else O(workers), about 5 ns each."""
        if now - self._oldest > REPORT_MAX_AGE_S:
            self.refresh(now)
        if self._told is None:
            self._told = Told(
                tuple(self.running),
                tuple(self.waiting),
                tuple(self.queued),
                tuple(self.queued_elsewhere),
                tuple(self.kv_share),
                tuple(self.in_flight.told),
                self._speeds.column,
                any(self.queued_elsewhere),
                None not in self.kv_share,
            )
        return self._told

    def refresh(self, now: float) -> None:
        """Drop reports that are too old by now. O(1) nearly always, O(workers) when one may be."""
        if now - self._oldest <= REPORT_MAX_AGE_S:
            return
        self._oldest = float("inf")
        for place in range(len(self.records)):
            self._enter(place, now)

    def _enter(self, place: int, now: float) -> None:
        record = self.records[place]
        self._told = None
        report = record.fresh_report(now)
        if report is None:
            record.forget_report()
            self.running[place] = self.waiting[place] = None
            self.in_flight.hear(place, UNREPORTED)
            self.queued[place] = self.queued_elsewhere[place] = self.kv_share[place] = None
            return
        self.running[place] = report.running
        self.waiting[place] = report.waiting
        self.in_flight.hear(place, report.running + report.waiting)
        queued = self.queued[place] = report.queued_uncached_tokens
        self.queued_elsewhere[place] = max(0, queued - report.queued_uncached_tokens_yours)
        self.kv_share[place] = _kv_share(report)
        self._oldest = min(self._oldest, record.reported_at)


def _kv_share(report: LoadReport) -> float | None:
    """None: it does not tell how much there is."""
    return report.kv_tokens_used / report.kv_tokens_total if report.kv_tokens_total else None


def nobody(
    model: str, records: Iterable[WorkerRecord], exclude: Collection[str]
) -> NoWorkerAvailable:
    """Of these workers none that serves the model is ready, or all that are have been left out."""
    states = Counter(record.state.value for record in records if record.identity.serves(model))
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    left_out = f"; {len(exclude)} left out" if exclude else ""
    return NoWorkerAvailable(f"no worker can take {model!r:.200} now: {counted}{left_out}")
