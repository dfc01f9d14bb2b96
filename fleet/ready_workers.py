"""The ready workers of one model: in columns, what is in flight and what they last reported."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec

from radixgate.errors import NoWorkerAvailable
from radixgate.fleet.compared_speeds import ComparedSpeeds
from radixgate.fleet.load_report import REPORT_MAX_AGE_S, LoadReport
from radixgate.fleet.ready_order import ReadyOrder
from radixgate.fleet.worker_record import InFlight, WorkerRecord
from radixgate.policies.kv_share import fullest
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
    most_kv: float | None  # the largest share; None: somebody's is


class ReadyWorkers(ReadyOrder):
    """Kept between requests: a report changes one place of each column, and before that copies
    those that a request has been given, so that a request finds them finished.

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
        self._sent_elsewhere = 0  # workers of which some of what is queued is not ours
        self._untold_kv = len(records)  # those whose share is None
        self._most_kv = 0.0  # of the others the largest
        # No report of the columns is older; the oldest may be younger than this.
        self._oldest = float("inf")
        self._told: Told | None = None  # the columns as they are; None: nobody has been given them
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
        assert self._sent_elsewhere == sum(map(bool, self.queued_elsewhere))
        assert self._untold_kv == self.kv_share.count(None)
        assert self._most_kv == fullest(self.kv_share)

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
        """The columns as they are now. O(1), but O(workers) when a report may be too old."""
        if now - self._oldest > REPORT_MAX_AGE_S:
            self.refresh(now)
        if self._told is None:
            self._told = Told(
                self.running,
                self.waiting,
                self.queued,
                self.queued_elsewhere,
                self.kv_share,
                self.in_flight.told,
                self._speeds.column,
                self._sent_elsewhere > 0,
                None if self._untold_kv else self._most_kv,
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
        self._keep_given()
        record = self.records[place]
        report = record.fresh_report(now)
        running = waiting = queued = elsewhere = kv_share = None
        requests = UNREPORTED
        if report is None:
            record.forget_report()
        else:
            running, waiting = report.running, report.waiting
            requests = running + waiting
            queued = report.queued_uncached_tokens
            elsewhere = max(0, queued - report.queued_uncached_tokens_yours)
            kv_share = _kv_share(report)
            self._oldest = min(self._oldest, record.reported_at)
        self._sent_elsewhere += bool(elsewhere) - bool(self.queued_elsewhere[place])
        self.running[place], self.waiting[place] = running, waiting
        self.queued[place], self.queued_elsewhere[place] = queued, elsewhere
        self._enter_kv_share(place, kv_share)
        self.in_flight.hear(place, requests)

    def _enter_kv_share(self, place: int, share: float | None) -> None:
        """O(1), but O(workers) when the largest becomes less."""
        before, self.kv_share[place] = self.kv_share[place], share
        self._untold_kv += (share is None) - (before is None)
        if share is not None and share >= self._most_kv:
            self._most_kv = share
        elif before == self._most_kv:
            self._most_kv = fullest(self.kv_share)

    def _keep_given(self) -> None:
        """Columns that requests have been given stay as they are: copies change. O(workers) for the
        first report after a request, 3 us for 256."""
        if self._told is None:
            return
        self._told = None
        self.running, self.waiting = self.running[:], self.waiting[:]
        self.queued, self.queued_elsewhere = self.queued[:], self.queued_elsewhere[:]
        self.kv_share = self.kv_share[:]
        self.in_flight.told = self.in_flight.told[:]


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
