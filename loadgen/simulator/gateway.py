"""A gateway of the simulation: the real books, mirror and policy, fed late and with losses."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from radixgate.fleet.fleet import (
    Ask,
    Fleet,
    FleetConfig,
    Lease,
    MirrorKey,
    Outcome,
    WorkerIdentity,
    WorkerState,
)
from radixgate.loadgen.simulator.job import Job
from radixgate.loadgen.simulator.sharing import Sharing
from radixgate.loadgen.simulator.timeline import Timeline
from radixgate.loadgen.simulator.worker import SimulatedWorker
from radixgate.policies.base import Policy
from radixgate.proto.kv_events import KvEvent
from radixgate.proto.kv_log import KvLog
from radixgate.proto.kv_updates import KvUpdate
from radixgate.radix_mirror.feed import KvFeed

MODEL = "simulated"


@dataclass(frozen=True, slots=True)
class NewsRules:
    """How news of the workers reaches the gateways."""

    report_gap_s: float = 0.02  # between two load reports of a worker, at least
    report_delay_s: float = 0.0
    event_delay_s: float = 0.0
    event_loss: float = 0.0  # share of the KV updates that never arrive
    reports: bool = True  # False: the workers report no load
    events: bool = True  # False: they report no KV either
    share_delay_s: float | None = None  # between gateways; None: they tell each other nothing
    # What a worker without events is believed to hold at most; None: what it does hold.
    believed_tokens: int | None = None


def name_of(worker: SimulatedWorker) -> str:
    return f"w{worker.number}"


def ask_of(job: Job, key: MirrorKey) -> Ask:
    """What the fleet is asked to find a worker for."""
    request = job.request
    return Ask(
        MODEL,
        request.input_tokens,
        {key: request.ids},
        session=request.session,
        fingerprint=request.fingerprint,
    )


class SimulatedGateway:
    """One Fleet object before all the workers."""

    def __init__(
        self,
        policy: Policy,
        workers: Sequence[SimulatedWorker],
        block_size: int,
        news: NewsRules,
        timeline: Timeline,
        rng: random.Random,
        config: FleetConfig,
        sharing: Sharing | None = None,
    ) -> None:
        """`sharing`: None, and it tells other gateways nothing."""
        self.fleet = Fleet(policy, timeline, rng, config)
        if sharing is not None:
            sharing.join(self.fleet)
        self._timeline = timeline
        self._workers = {name_of(worker): worker for worker in workers}
        self._key = MirrorKey(MODEL, "tokens", block_size)
        self._leases: dict[int, Lease] = {}
        for worker in workers:
            capacity = worker.pool.capacity * block_size
            self.fleet.admit(
                WorkerIdentity(
                    id=name_of(worker),
                    url=f"grpc://{name_of(worker)}",
                    kind="grpc",
                    model=MODEL,
                    mirror=self._key,
                    capacity_tokens=news.believed_tokens or capacity,
                    weights_id=MODEL,
                    instance_id=str(worker.number),
                    reports_kv=news.events,
                )
            )
            self.fleet.set_state(name_of(worker), WorkerState.READY)

    def send(self, job: Job) -> None:
        """Choose a worker for the job and submit it there."""
        lease = self.fleet.lease(ask_of(job, self._key))
        self._leases[job.number] = lease
        job.lease = lease.number
        self._workers[lease.worker.id].submit(job)

    def first_output(self, job: Job) -> None:
        self._leases[job.number].first_output()

    def ended(self, job: Job) -> None:
        self._leases.pop(job.number).close(Outcome.OK, job.cached_tokens)


class Newsroom:
    """Brings one worker's reports and KV updates to every gateway."""

    def __init__(
        self,
        worker: SimulatedWorker,
        gateways: Sequence[SimulatedGateway],
        news: NewsRules,
        timeline: Timeline,
        rng: random.Random,
    ) -> None:
        self._worker = worker
        self._fleets = [gateway.fleet for gateway in gateways]
        self._news = news
        self._timeline = timeline
        self._rng = rng
        self._log = KvLog(1)
        self._reported_at = float("-inf")
        name = name_of(worker)
        self._feeds = [KvFeed(fleet.mirror_of(name), name) for fleet in self._fleets]
        if news.events:
            worker.on_events = self._record
            for feed in self._feeds:
                self._catch_up(feed)
        if news.reports:
            worker.on_step = self._report

    def tick(self) -> None:
        """What is said every second, also by a worker that does nothing."""
        if self._news.reports:
            self._report()
        if self._news.events and self._news.event_loss:
            self._tell(self._log.heartbeat())

    @property
    def resyncs(self) -> int:
        """How often a gateway had to read a snapshot, the first one not counted."""
        return sum(feed.resyncs.total() for feed in self._feeds)

    def _record(self, events: Sequence[KvEvent]) -> None:
        seq = self._log.seq
        self._log.record(events)
        for update in self._log.since(self._log.epoch, seq):
            self._tell(update)

    def _tell(self, update: KvUpdate) -> None:
        for feed in self._feeds:
            if self._news.event_loss and self._rng.random() < self._news.event_loss:
                continue
            self._timeline.after(self._news.event_delay_s, partial(self._take, feed, update))

    def _take(self, feed: KvFeed, update: KvUpdate) -> None:
        if feed.take(update) is not None:
            self._catch_up(feed)

    def _catch_up(self, feed: KvFeed) -> None:
        for part in self._log.since(*feed.restart()):
            feed.take(part)

    def _report(self) -> None:
        now = self._timeline.now()
        if now - self._reported_at < self._news.report_gap_s:
            return
        self._reported_at = now
        for number, fleet in enumerate(self._fleets):
            report = self._worker.load_report(number)
            hand_over = partial(fleet.report_load, name_of(self._worker), report)
            self._timeline.after(self._news.report_delay_s, hand_over)
