"""Gateways that tell each other what they send know what one gateway would."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from radixgate.loadgen.simulator.gateway import News
from radixgate.loadgen.simulator.results import results_of
from simulated import conversations, request, simulate, workload

# Workers that tell nothing: what gateways do not share they never learn.
SILENT = News(reports=False, events=False)
SESSIONS = conversations(40, 5, random.Random(5))


def hit_rate(gateways: int, news: News) -> float:
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
