"""Small fleets in virtual time, and requests for them."""

import random
from collections.abc import Sequence

from radixgate.loadgen.simulator.block_pool import BlockPool
from radixgate.loadgen.simulator.engine_model import ENGINES, EngineModel
from radixgate.loadgen.simulator.gateway import NewsRules
from radixgate.loadgen.simulator.job import Job
from radixgate.loadgen.simulator.rules import rule_named
from radixgate.loadgen.simulator.simulation import SimulatedRun, SimulatedSite, Simulation
from radixgate.loadgen.simulator.timeline import Timeline
from radixgate.loadgen.simulator.trace import TracedRequest
from radixgate.loadgen.simulator.worker import SimulatedWorker
from radixgate.loadgen.simulator.workload import Client, Workload
from radixgate.policies.registry import PolicyConfigs

BLOCK = 512
STUDY = ENGINES["study-70b"]


def request(
    tokens: int, output: int = 1, *, first: int = 1, at_s: float = 0.0, session: str | None = None
) -> TracedRequest:
    """A prompt whose blocks are numbered on from `first`."""
    ids = range(first, first + tokens // BLOCK)
    return TracedRequest(at_s, tokens, output, ids, session=session, fingerprint=first)


def conversations(count: int, turns: int, rng: random.Random) -> list[Sequence[TracedRequest]]:
    """Sessions that share two blocks and grow by a few each turn; ids are unique to a prefix."""
    sessions: list[Sequence[TracedRequest]] = []
    fresh = 1_000
    for number in range(count):
        ids = [1, 2]
        session: list[TracedRequest] = []
        for turn in range(turns):
            grown = rng.randrange(1, 6)
            ids = [*ids, *range(fresh, fresh + grown)]
            fresh += grown
            tokens = len(ids) * BLOCK + rng.randrange(BLOCK)
            output = rng.randrange(1, 200)
            session.append(TracedRequest(-1.0, tokens, output, ids, f"s{number}", turn, 0.5))
        sessions.append(session)
    return sessions


def workload(sessions: Sequence[Sequence[TracedRequest]], every_s: float = 0.3) -> Workload:
    return Workload([Client(n * every_s, session) for n, session in enumerate(sessions)])


def simulate(
    policy: str,
    load: Workload,
    *,
    workers: int = 3,
    kv_blocks: int = 60,
    seed: int = 1,
    gateways: int = 1,
    news: NewsRules | None = None,
) -> tuple[Simulation, SimulatedRun]:
    site = SimulatedSite(workers, kv_blocks, BLOCK, STUDY, gateways, news or NewsRules())
    simulation = Simulation(site, rule_named(policy, PolicyConfigs()), seed)
    return simulation, simulation.run(load)


class Alone:
    """One worker without a gateway."""

    def __init__(self, kv_blocks: int = 1_000, engine: EngineModel = STUDY) -> None:
        self.timeline = Timeline()
        self.worker = SimulatedWorker(0, engine, BlockPool(kv_blocks), BLOCK, self.timeline)
        self.ended: list[Job] = []
        self._number = 0

    def send(self, request: TracedRequest, at_s: float = 0.0) -> Job:
        self._number += 1
        job = Job(request, self._number, at_s, lambda job: None, self.ended.append)
        self.timeline.at(at_s, lambda: self.worker.submit(job))
        return job

    def run(self) -> None:
        self.timeline.run()
        self.worker.check()
