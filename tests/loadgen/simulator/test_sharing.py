"""Gateways that tell each other what they send know what one gateway would."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from books import IDLE, ask, identity
from radixgate.fleet.fleet import Fleet, WorkerState
from radixgate.loadgen.simulator.gateway import NewsRules
from radixgate.loadgen.simulator.results import results_of
from radixgate.loadgen.simulator.sharing import Sharing
from radixgate.loadgen.simulator.timeline import Timeline
from radixgate.policies.registry import make_policy
from simulated import conversations, request, simulate, workload

# Workers that tell nothing: what gateways do not share they never learn.
SILENT = NewsRules(reports=False, events=False)
SESSIONS = conversations(40, 5, random.Random(5))


def hit_rate(gateways: int, news: NewsRules) -> float:
    simulation, run = simulate(
        "kv_cost", workload(SESSIONS, every_s=0.2), gateways=gateways, news=news, kv_blocks=200
    )
    for gateway in simulation.gateways:
        gateway.fleet.check()
        for view in gateway.fleet.workers():
            assert (view.in_flight, view.tokens_in_flight) == (0, 0)
    return results_of(run).hit_rate


@pytest.mark.slow
def test_four_gateways_that_share_hit_as_often_as_one() -> None:
    one = hit_rate(1, SILENT)
    assert hit_rate(4, SILENT) < one - 0.05
    assert abs(hit_rate(4, replace(SILENT, share_delay_s=0.005)) - one) < 0.02


def test_work_that_another_gateway_has_sent_counts() -> None:
    apart = [[request(20_000, 400, first=1 + 100 * n)] for n in range(40)]
    for share_delay_s, most in ((0.001, 10), (None, 20)):
        _, run = simulate(
            "least_load",
            workload(apart, every_s=0.01),
            gateways=4,
            workers=4,
            kv_blocks=1_000,
            news=replace(SILENT, share_delay_s=share_delay_s),
        )
        busiest = max(Counter(job.worker for job in run.jobs).values())
        assert busiest == most if share_delay_s else 10 < busiest <= most


def test_what_a_report_leaves_of_a_gateway_s_prompts_the_others_know_after_the_delay() -> None:
    timeline = Timeline()
    sharing = Sharing(0.005, timeline)
    one, two = (Fleet(make_policy("random", timeline, rng), timeline, rng) for rng in rngs(2))
    for fleet in (one, two):
        sharing.join(fleet)
        fleet.admit(identity("a"))
        fleet.set_state("a", WorkerState.READY)
    number = one.lease(ask("x" * 1_000)).number
    half_done = replace(IDLE, seen_number=number, queued_uncached_tokens_yours=500)
    timeline.at(1.0, lambda: one.report_load("a", half_done))
    seen: dict[float, int] = {}

    def look() -> None:
        view = two.worker("a")
        assert view is not None
        seen[timeline.now()] = view.uncached_tokens_in_flight

    for at_s in (0.004, 0.006, 1.004, 1.006):
        timeline.at(at_s, look)
    timeline.run()
    assert seen == {0.004: 0, 0.006: 1_000, 1.004: 1_000, 1.006: 500}


def rngs(count: int) -> list[random.Random]:
    return [random.Random(seed) for seed in range(count)]
