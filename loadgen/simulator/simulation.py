"""One policy over one workload in virtual time."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from radixgate.errors import ConfigError
from radixgate.fleet.fleet import FleetConfig
from radixgate.loadgen.simulator.block_pool import BlockPool
from radixgate.loadgen.simulator.engine_model import EngineModel
from radixgate.loadgen.simulator.gateway import Newsroom, NewsRules, SimulatedGateway
from radixgate.loadgen.simulator.job import Job
from radixgate.loadgen.simulator.rules import Rule
from radixgate.loadgen.simulator.sharing import Sharing
from radixgate.loadgen.simulator.timeline import Timeline
from radixgate.loadgen.simulator.truth import Truth
from radixgate.loadgen.simulator.worker import SimulatedWorker, know_neighbours
from radixgate.loadgen.simulator.workload import Client, Workload
from radixgate.proto.contract import KV_HEARTBEAT_S
from radixgate.radix_mirror.mirror import MirrorConfig


@dataclass(frozen=True, slots=True)
class SimulatedSite:
    """What is simulated, whatever the policy."""

    workers: int
    kv_blocks: int  # of each worker
    block_size: int
    engine: EngineModel
    gateways: int = 1
    news: NewsRules = field(default_factory=NewsRules)


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What came of it."""

    jobs: Sequence[Job]  # in order of arrival, all of them ended
    workers: Sequence[SimulatedWorker]
    resyncs: int


class Simulation:
    """Built for one run. Deterministic: the same seed makes the same run."""

    def __init__(self, site: SimulatedSite, rule: Rule, seed: int) -> None:
        self._timeline = Timeline()
        self._rng = random.Random(f"{seed}/dispatch")
        size = site.block_size
        shared = BlockPool(site.workers * site.kv_blocks) if rule.shared_cache else None
        self.workers = [
            SimulatedWorker(
                number, site.engine, shared or BlockPool(site.kv_blocks), size, self._timeline
            )
            for number in range(site.workers)
        ]
        if shared:
            for worker in self.workers:
                worker.on_room = self._wake_all
        know_neighbours(self.workers)
        truth = Truth(self.workers)
        news = _news_of(site, rule)
        # A gateway forgets after half an hour what it was not told of; a trace may last longer.
        fleet_config = FleetConfig(mirror=MirrorConfig(mirror_ttl_s=1e9))
        self.gateways = []
        sharing = None
        if news.share_delay_s is not None:
            sharing = Sharing(news.share_delay_s, self._timeline)
        for number in range(site.gateways):
            rng = random.Random(f"{seed}/gateway {number}")
            policy = rule.make(truth, self._timeline, rng)
            self.gateways.append(
                SimulatedGateway(
                    policy, self.workers, size, news, self._timeline, rng, fleet_config, sharing
                )
            )
        news_rng = random.Random(f"{seed}/news")
        self._newsrooms = [
            Newsroom(worker, self.gateways, news, self._timeline, news_rng)
            for worker in self.workers
        ]
        self._site = site
        self._jobs: list[Job] = []
        self._open = 0  # clients with requests still to be answered

    def run(self, workload: Workload) -> SimulatedRun:
        """Until everything is answered. Raises ConfigError for a request no worker can hold."""
        self.check_fits(workload)
        self._open = len(workload.clients)
        for client in workload.clients:
            self._timeline.at(client.starts_s, partial(self._send, client, 0))
        for number, newsroom in enumerate(self._newsrooms):
            first = KV_HEARTBEAT_S * number / len(self._newsrooms)
            self._timeline.at(first, partial(self._tick, newsroom))
        self._timeline.run()
        assert all(job.ended_s >= 0 for job in self._jobs), "somebody was never answered"
        resyncs = sum(newsroom.resyncs for newsroom in self._newsrooms)
        return SimulatedRun(self._jobs, self.workers, resyncs)

    def check_fits(self, workload: Workload) -> None:
        """Raises ConfigError for a request no worker can hold. O(requests)."""
        size, most = self._site.block_size, self.workers[0].pool.capacity
        for client in workload.clients:
            for request in client.requests:
                tokens = request.input_tokens + request.output_tokens
                if tokens > most * size:
                    # The same share of what is needed: the pool may be that of all workers.
                    wanted = -(-tokens // size)
                    raise ConfigError(
                        f"a request of {tokens} tokens cannot run in a pool of {most} blocks of"
                        f" {size} tokens; give --kv-blocks"
                        f" {-(-wanted * self._site.kv_blocks // most)} or more"
                    )

    def _send(self, client: Client, turn: int) -> None:
        number = len(self._jobs)
        chosen = self._rng.randrange(len(self.gateways))
        gateway = self.gateways[chosen]
        job = Job(
            client.requests[turn],
            number,
            self._timeline.now(),
            gateway.first_output,
            partial(self._ended, client, turn, gateway),
            gateway=chosen,
        )
        self._jobs.append(job)
        gateway.send(job)

    def _ended(self, client: Client, turn: int, gateway: SimulatedGateway, job: Job) -> None:
        gateway.ended(job)
        turn += 1
        if turn == len(client.requests):
            self._open -= 1
            return
        when = self._timeline.now() + client.requests[turn].think_s
        self._timeline.at(when, partial(self._send, client, turn))

    def _tick(self, newsroom: Newsroom) -> None:
        if not self._open:
            return
        newsroom.tick()
        self._timeline.after(KV_HEARTBEAT_S, partial(self._tick, newsroom))

    def _wake_all(self) -> None:
        for worker in self.workers:
            worker.wake()


def _news_of(site: SimulatedSite, rule: Rule) -> NewsRules:
    news = site.news
    if rule.shared_cache:
        # It chooses by the truth, and every worker holds the same: nothing need be told.
        return NewsRules(reports=False, events=False)
    return replace(news, events=news.events and rule.events, believed_tokens=rule.believed_tokens)
