"""Switchbacks whose answer is known; benchmarks/experiments_check.py has many and long ones."""

import math

import pytest
from scipy import stats

from radixgate.analysis.experiments.blocks import log_of
from radixgate.analysis.experiments.findings import findings_of
from radixgate.loadgen.simulator.switchback_trials import (
    CROWDED,
    PAIRS,
    Design,
    PolicyPair,
    alone,
    estimated_effect,
    lived,
    true_effect,
    try_alike,
)

# Round robin with itself is what the naive test fails at most clearly.
RUNS = {"round_robin": 16, "threshold": 8}


@pytest.mark.slow
def test_arms_that_are_alike_are_called_different_by_the_naive_test_only() -> None:
    design = Design(block_s=50.0, washout_s=10.0, hold_cap_s=25.0)
    trials = [
        try_alike(PAIRS[name], design, 6, seed, lead_in_s=40.0)
        for name, runs in RUNS.items()
        for seed in range(runs)
    ]
    most = stats.binom.ppf(0.995, len(trials), 0.05)
    for metric in trials[0].p:
        assert sum(trial.p[metric] <= 0.05 for trial in trials) <= most
    assert sum(trial.naive_p <= 0.05 for trial in trials) > most
    for factor in trials[0].covered:
        assert sum(trial.covered[factor] for trial in trials) >= len(trials) - most
        found = math.fsum(math.log(trial.recovered[factor]) for trial in trials) / len(trials)
        assert found == pytest.approx(math.log(factor), abs=0.08)


@pytest.mark.slow
def test_the_effect_is_found_and_without_a_reset_it_is_not() -> None:
    pair, seconds, lead_in_s = PAIRS["round_robin"], 960.0, 120.0
    a, b = true_effect(pair, seconds, 3, lead_in_s)
    sound = lived(pair, Design(120.0, 60.0, 30.0), 4, 3, lead_in_s)
    shared = lived(pair, Design(120.0, 60.0, 30.0, resets_mirror=False), 4, 3, lead_in_s)
    effect = b - a
    assert effect < 0
    off = [(estimated_effect(records) - effect) / effect for records in (sound, shared)]
    assert abs(off[0]) < 0.20
    assert off[1] < off[0] - 0.05
    assert findings_of(log_of(sound)).valid
    assert "the mirror was not reset" in " ".join(findings_of(log_of(shared)).warnings)


@pytest.mark.slow
def test_a_backlog_that_outlives_the_washout_is_what_the_hold_is_for() -> None:
    seconds, lead_in_s, seed = 1_200.0, 600.0, 100
    a, b = true_effect(CROWDED["round_robin"], seconds, seed, lead_in_s)
    assert a > 60  # seconds: most of the 400 users wait
    assert b < 10
    held = lived(CROWDED["round_robin"], Design(300.0, 30.0, hold_cap_s=120.0), 2, seed, lead_in_s)
    not_held = lived(
        CROWDED["round_robin"], Design(300.0, 30.0, hold_cap_s=0.0), 2, seed, lead_in_s
    )
    effect = b - a
    off = [(estimated_effect(records) - effect) / effect for records in (held, not_held)]
    assert abs(off[0]) < 0.10
    # B's first requests wait behind A's backlog, so that B seems to gain less than it does.
    assert off[1] < -0.10


@pytest.mark.slow
def test_copies_that_spread_in_a_crowd_need_the_hold_too() -> None:
    pair, lead_in_s, seed = CROWDED["threshold"], 300.0, 20
    a = mean_ttft(pair, "cache_aware_64", 300.0, seed, lead_in_s)
    b = mean_ttft(pair, "cache_aware_4", 1_200.0, seed, lead_in_s)
    assert a < 5  # seconds
    assert b > 60
    held = lived(pair, Design(600.0, 150.0, hold_cap_s=200.0), 1, seed, lead_in_s)
    not_held = lived(pair, Design(600.0, 150.0, hold_cap_s=0.0), 1, seed, lead_in_s)
    effect = b - a
    off = [(estimated_effect(records) - effect) / effect for records in (held, not_held)]
    assert abs(off[0]) < 0.10
    assert off[1] < -0.10


def mean_ttft(pair: PolicyPair, arm: str, seconds: float, seed: int, lead_in_s: float) -> float:
    values = [request.ttft_s or 0.0 for request in alone(pair, arm, seconds, seed, lead_in_s)]
    return math.fsum(values) / len(values)
