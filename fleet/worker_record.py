"""One worker's page in the fleet's books."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from radixgate.clock import Clock
from radixgate.fleet.identity import MirrorKey, WorkerIdentity, WorkerState
from radixgate.fleet.load_report import REPORT_MAX_AGE_S, LoadReport, PrefillSpeed
from radixgate.fleet.own_queue import OwnQueue
from radixgate.fleet.recent_prompts import RecentPrompts
from radixgate.policies.requests_there import UNREPORTED
from radixgate.radix_mirror.mirror import MirrorConfig, RadixMirror


@dataclass(slots=True)
class Drift:
    """Cached tokens as predicted at dispatch, against what the worker's replies told."""

    answers: int = 0
    predicted_tokens: int = 0
    cached_tokens: int = 0
    error_tokens: int = 0  # sum of absolute differences

    def add(self, predicted: int, cached: int) -> None:
        self.answers += 1
        self.predicted_tokens += predicted
        self.cached_tokens += cached
        self.error_tokens += abs(predicted - cached)


@dataclass(frozen=True, slots=True, eq=False)
class SharedMirror:
    """What all workers of one key have in common."""

    key: MirrorKey
    mirror: RadixMirror
    recent: RecentPrompts
    # Called with a worker when our leases there count otherwise, unless the mirror hears of it.
    moved: Callable[[str], None] = lambda worker_id: None

    @classmethod
    def of(cls, key: MirrorKey, clock: Clock, config: MirrorConfig) -> "SharedMirror":
        """One that is cold."""
        return cls(key, RadixMirror(clock, config), RecentPrompts())

    def forget(self) -> int:
        """All that no worker has reported; how many blocks that were."""
        self.recent.clear()
        return self.mirror.forget()


class InFlight:
    """Requests dispatched and not ended, in columns that a decision reads as they are."""

    __slots__ = ("requests", "there", "told", "uncached")

    def __init__(self, requests: list[int]) -> None:
        self.requests = requests
        self.uncached = [0] * len(requests)  # prompt tokens still to be computed, as far as we know
        self.told = [UNREPORTED] * len(requests)  # requests running and waiting, as reported
        self.there = requests[:]  # whichever is more

    def add(self, place: int, requests: int) -> None:
        """So many more of ours."""
        own = self.requests[place] + requests
        self.requests[place] = own
        told = self.told[place]
        self.there[place] = own if own > told else told

    def hear(self, place: int, told: int) -> None:
        """So many run and wait there; UNREPORTED: it does not tell."""
        self.told[place] = told
        self.add(place, 0)

    def check(self) -> None:
        """Assert that the columns agree. O(workers)."""
        assert len(self.uncached) == len(self.requests)
        assert self.there == list(map(max, self.requests, self.told))


@dataclass(slots=True, eq=False)
class WorkerRecord:
    """What this gateway counts of a worker and what the worker says. Changed by Fleet and Lease."""

    identity: WorkerIdentity
    shared: SharedMirror
    own: OwnQueue
    state: WorkerState = WorkerState.JOINING
    # Its counts stand at this place of these columns: its own, or those of the ready workers.
    counts: InFlight = field(default_factory=lambda: InFlight([0]))
    place: int = 0
    tokens_in_flight: int = 0  # prompt tokens of the requests in flight
    # Of all that is in flight, what other processes of this gateway have sent.
    siblings_requests: int = 0
    siblings_tokens: int = 0
    siblings_uncached_tokens: int = 0
    report: LoadReport | None = None
    reported_at: float = float("-inf")
    speed: PrefillSpeed = field(default_factory=PrefillSpeed)
    drift: Drift = field(default_factory=Drift)

    @property
    def in_flight(self) -> int:
        """Requests dispatched and not ended."""
        return self.counts.requests[self.place]

    @property
    def uncached_tokens_in_flight(self) -> int:
        """Of their prompt tokens, what is still to be computed, as far as we know."""
        return self.counts.uncached[self.place]

    def move(self, counts: InFlight, place: int) -> None:
        """From now on its counts stand there."""
        counts.add(place, self.in_flight - counts.requests[place])
        counts.uncached[place] = self.uncached_tokens_in_flight
        self.counts, self.place = counts, place

    def hear(self, report: LoadReport, now: float) -> bool:
        """Its last report; whether it shows another speed than before. O(1) on average."""
        known = self.speed.tokens_per_s
        self.report, self.reported_at = report, now
        self.speed.add(report, now)
        left = report.queued_uncached_tokens_yours
        self._wait_less(self.own.hear(report.seen_number, left))
        return self.speed.tokens_per_s != known

    def forget_report(self) -> None:
        """It is too old: our leases count whole again."""
        self._wait_less(self.own.hear(None, 0))

    def _wait_less(self, tokens: int) -> None:
        if tokens:
            self.counts.uncached[self.place] -= tokens
            self.shared.moved(self.identity.id)

    def enter_mirror(self) -> None:
        """Cold, also if it was there before."""
        identity = self.identity
        self.shared.mirror.add_worker(
            identity.id,
            reports_kv=identity.reports_kv,
            capacity_blocks=identity.mirror.capacity_blocks(identity.capacity_tokens),
        )

    def fresh_report(self, now: float) -> LoadReport | None:
        """The last report; None once it is older than two seconds."""
        return self.report if now - self.reported_at <= REPORT_MAX_AGE_S else None

    def check(self) -> None:
        """Assert that its counts are possible. O(leases that no report has seen)."""
        assert self.in_flight >= 0
        assert self.tokens_in_flight >= self.uncached_tokens_in_flight >= 0
        assert self.uncached_tokens_in_flight == self.own.tokens + self.siblings_uncached_tokens
        self.own.check()

    def view(self, now: float) -> "WorkerView":
        """As others may see it. O(1): no mirror is asked."""
        return WorkerView(
            identity=self.identity,
            state=self.state,
            in_flight=self.in_flight,
            tokens_in_flight=self.tokens_in_flight,
            uncached_tokens_in_flight=self.uncached_tokens_in_flight,
            report=self.fresh_report(now),
            prefill_tokens_per_s=self.speed.tokens_per_s,
            drift=replace(self.drift),
        )


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker as the admin API and the metrics show it."""

    identity: WorkerIdentity
    state: WorkerState
    in_flight: int
    tokens_in_flight: int
    uncached_tokens_in_flight: int
    report: LoadReport | None  # None: none yet, or too old
    prefill_tokens_per_s: float | None  # None: not measured yet
    drift: Drift
