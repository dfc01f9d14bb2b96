"""Switchbacks over fleets in virtual time: what is recorded, and what a switch leaves behind."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from radixgate.analysis.experiments.blocks import lived_blocks, log_of
from radixgate.analysis.experiments.findings import findings_of
from radixgate.analysis.experiments.records import (
    Arm,
    BlockEvent,
    Declaration,
    Record,
    RequestLine,
)
from radixgate.loadgen.simulator.prefix_sessions import PrefixTraffic, crowd_for, sessions_for
from radixgate.loadgen.simulator.switchback import SimulatedSwitchback, SwitchedSite
from radixgate.loadgen.simulator.workload import Client, Workload
from radixgate.policies.base import Policy
from radixgate.policies.least_load import LeastLoad
from simulated import BLOCK, STUDY, request

TRAFFIC = PrefixTraffic(
    sessions_per_s=2.0,
    groups=8,
    zipf=1.0,
    prefix_blocks=4,
    turns=2.0,
    turn_blocks=1,
    output_tokens=40,
    think_s=1.0,
    block_size=BLOCK,
)
SITE = SwitchedSite(workers=3, kv_blocks=200, believed_blocks=250, block_size=BLOCK, engine=STUDY)
DECLARED = Declaration(
    experiment="sim",
    kind="switchback",
    arms=(Arm("a", "least_load"), Arm("b", "least_load")),
    began_at=0.0,
    seed=4,
    block_s=20.0,
    pairs=3,
    washout_s=5.0,
    hold_cap_s=10.0,
)


ALONE = msgspec.structs.replace(DECLARED, pairs=0, block_s=0.0, washout_s=0.0)
MOMENTS = ("holding", "drained", "capped", "reset", "began", "washed_out", "ended")


def policy_of(name: str, rng: random.Random) -> Policy:
    return LeastLoad(rng)


def run(declared: Declaration = DECLARED, seed: int = 1) -> list[Record]:
    traffic = sessions_for(TRAFFIC, 130.0, random.Random(seed))
    return SimulatedSwitchback(SITE, declared, policy_of, seed, lead_in_s=10.0).run(traffic)


def events(records: Sequence[Record], *moments: str) -> list[BlockEvent]:
    return [r for r in records if isinstance(r, BlockEvent) and r.moment in moments]


def lines(records: Sequence[Record]) -> list[RequestLine]:
    return [record for record in records if isinstance(record, RequestLine)]


def test_traffic_is_as_asked_for() -> None:
    traffic = sessions_for(TRAFFIC, 2_000.0, random.Random(1))
    assert len(traffic.clients) == pytest.approx(4_000, rel=0.06)
    assert len(traffic) / len(traffic.clients) == pytest.approx(2.0, rel=0.06)
    turns = [request for client in traffic.clients for request in client.requests]
    assert sum(r.output_tokens for r in turns) / len(turns) == pytest.approx(
        40 * (1 - math.exp(-2)), rel=0.06
    )
    shares = [sum(1 for c in traffic.clients if c.requests[0].ids[0] == 1 + 4 * g) for g in (0, 1)]
    assert shares[0] / shares[1] == pytest.approx(2.0, rel=0.15)
    for client in traffic.clients[:50]:
        for before, after in zip(client.requests, client.requests[1:], strict=False):
            assert list(after.ids[: len(before.ids)]) == list(before.ids)
            assert len(after.ids) > len(before.ids)
            assert after.input_tokens // BLOCK == len(after.ids)


def test_a_crowd_has_as_many_users_as_asked_for_and_none_runs_out_of_sessions() -> None:
    crowd = crowd_for(TRAFFIC, 30, 200.0, random.Random(1))
    assert len(crowd.clients) == 30
    assert all(0.0 <= client.starts_s < TRAFFIC.think_s for client in crowd.clients)
    for client in crowd.clients:
        assert sum(request.think_s for request in client.requests) >= 200.0
        assert client.requests[0].turn == 0
        assert all(request.think_s > 0.0 for request in client.requests)
    named = [request.session for client in crowd.clients for request in client.requests]
    turns = [request.turn for client in crowd.clients for request in client.requests]
    assert len(set(zip(named, turns, strict=True))) == len(named)
    assert len(named) / len(set(named)) == pytest.approx(TRAFFIC.turns, rel=0.06)


def test_nobody_sends_once_the_time_has_come() -> None:
    two = [request(600), replace(request(600, first=9), think_s=30.0)]
    crowd = Workload([Client(1.0, two), Client(50.0, [request(600)])])
    records = SimulatedSwitchback(SITE, ALONE, policy_of, 1, 0.0, sends_until_s=20.0).run(crowd)
    assert [round(line.t_dispatch_s) for line in lines(records)] == [1]
    assert len(lines(SimulatedSwitchback(SITE, ALONE, policy_of, 1, 0.0).run(crowd))) == 3


def test_its_records_are_those_of_a_sound_experiment() -> None:
    found = findings_of(log_of(run()))
    assert [check.name for check in found.checks if not check.ok] == []
    assert found.pairs == 3
    assert found.dropped == []
    assert found.ended is not None
    assert found.ended.reason == "finished"


def test_the_steps_of_a_switch_are_in_order() -> None:
    moments = [(e.block, e.moment) for e in events(run(), *MOMENTS)]
    assert moments[:4] == [(0, "reset"), (0, "began"), (0, "washed_out"), (0, "ended")]
    assert [moment for block, moment in moments if block == 1] == [
        "holding",
        "drained",
        "reset",
        "began",
        "washed_out",
        "ended",
    ]
    assert moments[-1] == (5, "ended")


def test_nothing_is_dispatched_in_a_hold_and_what_waited_knows_how_long() -> None:
    records = run()
    holds = events(records, "holding")
    drained = events(records, "drained")
    assert len(holds) == len(drained) == 5
    for hold, end in zip(holds, drained, strict=True):
        assert end.hold_s == pytest.approx(end.t_s - hold.t_s)
        assert not [r for r in lines(records) if hold.t_s < r.t_dispatch_s < end.t_s]
        waited = [r for r in lines(records) if r.block == end.block and r.held_s]
        assert len(waited) == end.held
        assert sum(r.held_s for r in waited) == pytest.approx(end.held_s)
        assert all(r.t_dispatch_s == pytest.approx(end.t_s) for r in waited)
    assert sum(end.held for end in drained) > 0


def test_a_request_counts_for_the_block_of_its_dispatch_though_it_ends_in_the_next() -> None:
    records = run(DECLARED)
    for block in lived_blocks(log_of(records)):
        for line in block.requests:
            assert line.arm == block.arm
            assert block.began_s - 1e-9 <= line.t_dispatch_s <= block.ended_s
            assert line.washout == (line.t_dispatch_s < block.began_s + 5.0)
    without = run(msgspec.structs.replace(DECLARED, hold_cap_s=0.0))
    (first, *_) = [b for b in lived_blocks(log_of(without)) if b.index == 0]
    assert any(r.t_dispatch_s + (r.e2e_s or 0.0) > first.ended_s for r in first.requests)


def test_a_hold_that_does_not_drain_ends_at_its_cap() -> None:
    long = Workload([Client(9.0, [request(600, output=20_000)])])
    records = SimulatedSwitchback(SITE, DECLARED, policy_of, 1, lead_in_s=0.0).run(long)
    capped = events(records, "capped")
    assert [(e.block, e.hold_s, e.left) for e in capped][:2] == [(1, 10.0, 1), (2, 10.0, 1)]


def test_a_reset_leaves_nothing_of_the_arm_before_in_the_mirror() -> None:
    assert all(e.forgotten > 0 for e in events(run(), "reset"))
    shared = run(msgspec.structs.replace(DECLARED, resets_mirror=False))
    assert all(e.forgotten == 0 for e in events(shared, "reset"))


def test_the_same_seed_makes_the_same_records() -> None:
    assert run() == run()
    assert run(seed=2) != run()


def test_workers_that_share_cores_slow_each_other_down_here_too() -> None:
    """Two prompts at once, one at each worker: each pays for the other as its step begins."""
    asked = request(1_000)
    both = Workload([Client(0.0, (asked,)), Client(0.0, (asked,))])

    def seconds(share: float) -> list[float]:
        engine = replace(STUDY, neighbour_share=share)
        site = replace(SITE, workers=2, engine=engine)
        records = SimulatedSwitchback(site, ALONE, policy_of, 1, lead_in_s=0.0).run(both)
        return sorted(line.e2e_s or 0.0 for line in lines(records))

    first, second = seconds(0.0)
    assert first == pytest.approx(second)
    assert seconds(0.5) == pytest.approx([first, 1.5 * first])
