"""Whole fleets in virtual time: nothing is lost, and the same seed is the same run."""

import itertools
import random
from dataclasses import replace

import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.simulator.engine_model import EngineModel
from radixgate.loadgen.simulator.gateway import NewsRules
from radixgate.loadgen.simulator.results import completion_rate, results_of
from radixgate.loadgen.simulator.rules import rule_named, rule_names
from radixgate.loadgen.simulator.simulation import SimulatedSite, Simulation
from radixgate.loadgen.simulator.workload import Client, Workload
from radixgate.policies.registry import PolicyConfigs
from radixgate.proto.kv_events import Tier
from simulated import BLOCK, STUDY, conversations, request, simulate, workload

SESSIONS = conversations(12, 4, random.Random(3))
LATE = NewsRules(report_delay_s=0.2, event_delay_s=0.05, event_loss=0.2)


@pytest.mark.parametrize("policy", rule_names())
def test_every_request_ends_once_and_its_tokens_are_cached_or_computed(policy: str) -> None:
    simulation, run = simulate(policy, workload(SESSIONS))
    assert len(run.jobs) == 48
    for job in run.jobs:
        assert job.arrived_s < job.first_s <= job.ended_s
        assert job.cached_tokens + job.computed_tokens == job.request.input_tokens
        assert job.holding is None
    assert sum(worker.computed_tokens for worker in run.workers) == sum(
        job.computed_tokens for job in run.jobs
    )
    for worker in run.workers:
        worker.check()
        assert worker.requests == 0
    for gateway in simulation.gateways:
        gateway.fleet.check()
        assert all(view.in_flight == 0 for view in gateway.fleet.workers())


def test_the_same_seed_makes_the_same_run() -> None:
    def ends(seed: int) -> list[tuple[int, float]]:
        _, run = simulate("kv_cost", workload(SESSIONS), seed=seed, gateways=2, news=LATE)
        return [(job.worker, job.ended_s) for job in run.jobs]

    assert ends(1) == ends(1)
    assert ends(1) != ends(2)


def test_turns_follow_their_answers() -> None:
    _, run = simulate("round_robin", workload(SESSIONS))
    turns = [job for job in run.jobs if job.request.session == "s0"]
    assert [job.request.turn for job in turns] == [0, 1, 2, 3]
    for before, after in itertools.pairwise(turns):
        assert after.arrived_s == pytest.approx(before.ended_s + 0.5)


def test_the_mirror_of_a_gateway_ends_as_the_worker_is() -> None:
    simulation, run = simulate("cache_aware", workload(SESSIONS))
    (gateway,) = simulation.gateways
    for worker, view in zip(run.workers, gateway.fleet.workers(), strict=True):
        blocks = gateway.fleet.mirror_of(view.identity.id).blocks_of(view.identity.id)
        assert blocks.stored[Tier.DEVICE] == worker.pool.evictable
        assert view.drift.answers == sum(job.worker == worker.number for job in run.jobs)


def test_losses_are_found_and_repaired() -> None:
    simulation, run = simulate("cache_aware", workload(SESSIONS), news=LATE)
    assert run.resyncs > 0
    assert results_of(run).requests > 0
    simulation.gateways[0].fleet.check()


def test_gateways_share_the_fleet() -> None:
    simulation, run = simulate("round_robin", workload(SESSIONS), gateways=3)
    assert {job.gateway for job in run.jobs} == {0, 1, 2}
    assert sum(len(gateway.fleet.workers()) for gateway in simulation.gateways) == 9


def test_the_oracle_finds_everything_in_one_cache() -> None:
    prompts = [[request(5_120, at_s=0.0)] for _ in range(6)]
    _, run = simulate("oracle", workload(prompts, every_s=5.0), workers=3)
    assert [job.cached_tokens for job in run.jobs] == [0] + 5 * [9 * 512]


def test_a_request_that_no_worker_can_hold_is_refused_beforehand() -> None:
    with pytest.raises(ConfigError, match="--kv-blocks 100"):
        simulate("random", workload([[request(100 * 512 - 1)]]))


def test_the_rate_of_a_steady_stream_is_its_slope() -> None:
    prompts = [[request(600, first=1 + 10 * n)] for n in range(50)]
    _, run = simulate("random", workload(prompts, every_s=0.5))
    assert completion_rate(run) == pytest.approx(2.0, rel=0.01)


def test_workers_that_share_cores_slow_each_other_down() -> None:
    """Two prompts at once on two workers: the second begins beside the first."""
    engine = replace(STUDY, neighbour_share=0.5)
    site = SimulatedSite(workers=2, kv_blocks=60, block_size=BLOCK, engine=engine)
    both = workload([[request(1_000)], [request(1_000, first=100)]], every_s=0.0)
    run = Simulation(site, rule_named("round_robin", PolicyConfigs()), 1).run(both)
    alone_s = STUDY.step_time(1_000, 0, 0)
    assert [job.ttft_s for job in run.jobs] == pytest.approx([alone_s, 1.5 * alone_s])


def test_an_answer_is_slow_while_another_worker_computes_a_prompt() -> None:
    """Steps of 10 ms, of 20 beside the prompt: it lasts 600 ms, from the middle of one of them."""
    engine = EngineModel(0.010, 50e-6, 0.0, 0.0, chunk_tokens=8_192, neighbour_share=1.0)
    site = SimulatedSite(workers=2, kv_blocks=60, block_size=BLOCK, engine=engine)
    steps, begins_s = 200, engine.step_time(512, 0, 0)
    answer, prompt = request(512, 1 + steps), request(5_800, first=100)
    both = Workload([Client(0.0, (answer,)), Client(begins_s + 0.105, (prompt,))])
    jobs = Simulation(site, rule_named("round_robin", PolicyConfigs()), 1).run(both).jobs
    assert [job.worker for job in jobs] == [0, 1]
    assert jobs[1].ttft_s == pytest.approx(2 * 0.300)
    # From the step that begins at 110 ms to the one that begins at 690 ms.
    assert jobs[0].ended_s == pytest.approx(begins_s + 0.010 * steps + 0.010 * 30)
