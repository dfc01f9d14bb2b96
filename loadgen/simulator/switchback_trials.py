"""Switchbacks whose answer is known: arms that are alike, effects put in, and whole fleets under
one arm alone."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from radixgate.analysis.experiments.blocks import Pair, log_of, pairs_of
from radixgate.analysis.experiments.effects import differences
from radixgate.analysis.experiments.metrics import METRICS
from radixgate.analysis.experiments.naive import welch_on_requests
from radixgate.analysis.experiments.randomisation import paired_test
from radixgate.analysis.experiments.records import Arm, Declaration, Record, RequestLine
from radixgate.loadgen.simulator.switchback import SimulatedSwitchback
from radixgate.loadgen.simulator.switchback_scenes import COPIED_CROWD, CROWD, SESSIONS, Scene
from radixgate.loadgen.simulator.switched_gateway import PolicyOf
from radixgate.policies.base import Policy
from radixgate.policies.cache_aware import CacheAwareConfig, cache_aware
from radixgate.policies.round_robin import RoundRobin

PRIMARY = ("ttft_mean", "ttft_p95", "e2e_mean", "hit_rate")


@dataclass(frozen=True, slots=True)
class PolicyPair:
    """Two policies that are compared. Their names tell what they are."""

    name: str
    a: Arm
    b: Arm
    scene: Scene = SESSIONS

    def alike(self, which: int) -> "PolicyPair":
        """The same policy under both names: of A for an even number, of B for an odd one."""
        arm = self.b if which % 2 else self.a
        return PolicyPair(
            f"{arm.name} with itself",
            Arm("one", arm.policy, arm.settings),
            Arm("other", arm.policy, arm.settings),
        )


def _threshold(requests: int, times: float | None = None) -> Arm:
    """A match is given up beyond so many requests more, and so many times as many; None: 1.5."""
    settings: dict[str, int | float] = {"balance_abs_threshold": requests}
    if times is not None:
        settings["balance_rel_threshold"] = times
    return Arm(f"cache_aware_{requests}", "cache_aware", settings)


_ROUND_ROBIN = Arm("round_robin", "round_robin")
PAIRS: Mapping[str, PolicyPair] = {
    pair.name: pair
    for pair in (
        # At the full pace round robin has no steady state to be compared in.
        PolicyPair("round_robin", _ROUND_ROBIN, _threshold(64), SESSIONS.paced(0.75)),
        PolicyPair("threshold", _threshold(64), _threshold(4)),
    )
}
# Where hundreds wait nobody has 1.5 times as many as another: there the difference alone decides.
CROWDED: Mapping[str, PolicyPair] = {
    "round_robin": PolicyPair("round_robin in a crowd", _ROUND_ROBIN, _threshold(64), CROWD),
    "threshold": PolicyPair(
        "threshold in a crowd", _threshold(64, 1.0), _threshold(4, 1.0), COPIED_CROWD
    ),
}


@dataclass(frozen=True, slots=True)
class Design:
    """How a switchback switches."""

    block_s: float
    washout_s: float
    hold_cap_s: float = 60.0
    resets_mirror: bool = True


def lived(
    pair: PolicyPair, design: Design, pairs: int, seed: int, lead_in_s: float
) -> list[Record]:
    """The records of one switchback; another seed is other traffic and another schedule."""
    declared = _declared(pair, design, pairs, seed)
    seconds = lead_in_s + 2 * pairs * design.block_s
    return _run(pair, declared, seed, lead_in_s, seconds)


def alone(
    pair: PolicyPair, which: str, seconds: float, seed: int, lead_in_s: float
) -> list[RequestLine]:
    """The requests of the same traffic with one arm all the time: the truth of that arm."""
    first, second = (pair.a, pair.b) if which == pair.a.name else (pair.b, pair.a)
    only = PolicyPair(pair.name, first, second, pair.scene)
    declared = _declared(only, Design(0.0, 0.0), 0, seed)
    records = _run(only, declared, seed, lead_in_s, lead_in_s + seconds)
    # Sessions go on for a while after the last has begun, with less and less beside them.
    return [r for r in records if isinstance(r, RequestLine) and r.t_dispatch_s < seconds]


def true_effect(
    pair: PolicyPair, seconds: float, seed: int, lead_in_s: float
) -> tuple[float, float]:
    """Mean TTFT under A alone and under B alone, in seconds."""
    means = []
    for arm in (pair.a, pair.b):
        values = [r.ttft_s or 0.0 for r in alone(pair, arm.name, seconds, seed, lead_in_s)]
        means.append(math.fsum(values) / len(values))
    return means[0], means[1]


def estimated_effect(records: Sequence[Record]) -> float:
    """Mean TTFT of B's blocks less A's, over the pairs, in seconds."""
    log = log_of(records)
    pairs, _ = pairs_of(log)
    washout_s = log.declaration.washout_s
    of = METRICS["ttft_mean"].of
    steps = [
        (of(pair.b.kept(washout_s)) or 0.0) - (of(pair.a.kept(washout_s)) or 0.0) for pair in pairs
    ]
    return math.fsum(steps) / len(steps)


@dataclass(frozen=True, slots=True)
class AlikeTrial:
    """One switchback between an arm and itself."""

    p: Mapping[str, float]  # of the randomisation test, by metric
    naive_p: float  # Welch over requests, of TTFT
    # By factor: does the interval hold the effect that was put into B's TTFT?
    covered: Mapping[float, bool]
    recovered: Mapping[float, float]  # by factor: the estimate, as a factor


def try_alike(
    pair: PolicyPair,
    design: Design,
    pairs: int,
    seed: int,
    lead_in_s: float,
    factors: Sequence[float] = (1.05, 1.1, 1.2),
) -> AlikeTrial:
    """What the tests say where there is nothing, and where an effect is put in afterwards.

    An effect multiplies each TTFT of B by the factor and a lognormal draw of mean 1.
    """
    log = log_of(lived(pair.alike(seed), design, pairs, seed, lead_in_s))
    found, _ = pairs_of(log)
    washout_s = design.washout_s
    tests = {name: paired_test(differences(found, METRICS[name], washout_s)) for name in PRIMARY}
    a = [r.ttft_s for p in found for r in p.a.kept(washout_s) if r.ttft_s is not None]
    b = [r.ttft_s for p in found for r in p.b.kept(washout_s) if r.ttft_s is not None]
    covered, recovered = {}, {}
    rng = random.Random(f"{seed}/effects")
    for factor in factors:
        spoilt = [_with_effect(pair_, factor, rng) for pair_ in found]
        test = paired_test(differences(spoilt, METRICS["ttft_mean"], washout_s))
        interval = test.interval
        covered[factor] = interval is not None and (
            interval.low <= math.log(factor) <= interval.high
        )
        recovered[factor] = math.exp(test.estimate)
    return AlikeTrial(
        p={name: test.p for name, test in tests.items()},
        naive_p=welch_on_requests(a, b),
        covered=covered,
        recovered=recovered,
    )


_SPREAD = 0.5


def _with_effect(pair: Pair, factor: float, rng: random.Random) -> Pair:
    requests = [
        msgspec.structs.replace(
            r,
            ttft_s=None
            if r.ttft_s is None
            else r.ttft_s * factor * rng.lognormvariate(-_SPREAD * _SPREAD / 2, _SPREAD),
        )
        for r in pair.b.requests
    ]
    return Pair(pair.number, pair.a, replace(pair.b, requests=requests))


def _run(
    pair: PolicyPair, declared: Declaration, seed: int, lead_in_s: float, seconds: float
) -> list[Record]:
    # A crowd would go on for as long as it is answered; sessions that have come play to their end.
    until_s = math.inf if pair.scene.users is None else seconds
    switchback = SimulatedSwitchback(
        pair.scene.site, declared, _maker(pair), seed, lead_in_s, sends_until_s=until_s
    )
    return switchback.run(pair.scene.workload(seconds, seed))


def _declared(pair: PolicyPair, design: Design, pairs: int, seed: int) -> Declaration:
    return Declaration(
        experiment=f"{pair.name} {seed}",
        kind="switchback",
        arms=(pair.a, pair.b),
        began_at=0.0,
        seed=seed,
        block_s=design.block_s,
        pairs=pairs,
        washout_s=design.washout_s,
        hold_cap_s=design.hold_cap_s,
        resets_mirror=design.resets_mirror,
    )


def _maker(pair: PolicyPair) -> PolicyOf:
    arms = {arm.name: arm for arm in (pair.a, pair.b)}

    def make(name: str, rng: random.Random) -> Policy:
        arm = arms[name]
        if arm.policy == "round_robin":
            return RoundRobin(rng)
        return cache_aware(msgspec.convert(dict(arm.settings), CacheAwareConfig), rng)

    return make
