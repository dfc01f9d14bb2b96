"""Whether both arms were given the same: the schedule kept, the time shared, the traffic alike."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from radixgate.analysis.experiments.blocks import LivedBlock, Log, Pair
from radixgate.analysis.experiments.randomisation import paired_test
from radixgate.analysis.experiments.records import RequestLine, Schedule
from radixgate.analysis.experiments.schedule import digest_of

# Many things are tested, and a false alarm stops an experiment that is right.
ALARM = 0.001
_SECONDS_OFF = 0.10
# A dispatch and the record of its block's beginning are stamped one after the other.
_CLOCK_S = 0.010


@dataclass(frozen=True, slots=True)
class Check:
    """One question, and what came of it."""

    name: str
    ok: bool
    detail: str
    checked: bool = True  # False: too little was recorded to tell, and `ok` says nothing


def switchback_checks(log: Log, blocks: Sequence[LivedBlock], pairs: Sequence[Pair]) -> list[Check]:
    """Of an experiment with blocks. O(requests log requests)."""
    if log.schedule is None:
        return [Check("schedule", False, "none was committed before the start")]
    return [
        _committed(log.schedule),
        _labels(log, blocks),
        _seconds(log, pairs),
        _offered(log, pairs),
        *_alike(log, pairs),
    ]


def split_checks(log: Log) -> list[Check]:
    """Of a split by unit: were as many units sent to each arm as were meant to be?

    Units are counted, never requests: those of one session are one draw, however many they are.
    """
    a, b = (arm.name for arm in log.declaration.arms)
    arms: dict[int, set[str]] = defaultdict(set)
    for request in log.requests:
        if request.unit is not None:
            arms[request.unit].add(request.arm)
    both = sum(len(found) > 1 for found in arms.values())
    in_b = sum(found == {b} for found in arms.values())
    in_a = sum(found == {a} for found in arms.values())
    told = f"{both} of {len(arms)} units were sent to both arms"
    checks = [Check("one arm a unit", both == 0, told, checked=bool(arms))]
    share = log.declaration.share_b
    if share is not None and 0.0 < share < 1.0:
        if not in_a + in_b:
            return [*checks, Check("sample ratio", True, "no units to tell", checked=False)]
        p = sample_ratio_p(in_a, in_b, share)
        checks.append(
            Check(
                "sample ratio",
                p >= ALARM,
                f"{in_b} of {in_a + in_b} units in B, {share:.1%} were meant (p = {p:.3g})",
            )
        )
    return checks


def sample_ratio_p(in_a: int, in_b: int, share_b: float) -> float:
    """p-value of the chi-square test that units were dealt out as meant."""
    total = in_a + in_b
    expected = [total * (1.0 - share_b), total * share_b]
    return float(stats.chisquare([in_a, in_b], expected).pvalue)


def _committed(schedule: Schedule) -> Check:
    found = digest_of(schedule.blocks)
    same = found == schedule.sha256
    detail = f"sha256 {schedule.sha256[:16]}"
    return Check("schedule as committed", same, detail if same else f"{detail}, is {found[:16]}")


def _labels(log: Log, blocks: Sequence[LivedBlock]) -> Check:
    """Each request has its block's arm, and was dispatched while that block ran.

    What is sent while dispatch is held belongs to no block, and counts for nothing.
    """
    wrong = 0
    for block in blocks:
        first_s, last_s = block.began_s - _CLOCK_S, block.ended_s + _CLOCK_S
        for request in block.requests:
            # One that was turned away is stamped then, however long it had waited.
            timely = request.outcome == "rejected" or first_s <= request.t_dispatch_s <= last_s
            wrong += request.arm != block.arm or not timely
    assert log.schedule is not None
    known = {block.index for block in log.schedule.blocks}
    outside = [request for request in log.requests if request.block not in known]
    wrong += sum(not request.washout for request in outside)
    return Check(
        "arms as scheduled",
        wrong == 0,
        f"{wrong} of {len(log.requests)} requests not of their block's arm or time; {len(outside)}"
        " sent during holds",
        checked=bool(log.requests),
    )


def _seconds(log: Log, pairs: Sequence[Pair]) -> Check:
    """What is kept of each arm, in time: holds take it from one arm or the other."""
    washout_s = log.declaration.washout_s
    a = math.fsum(pair.a.ended_s - pair.a.began_s - washout_s for pair in pairs)
    b = math.fsum(pair.b.ended_s - pair.b.began_s - washout_s for pair in pairs)
    off = abs(b - a) / max(a, b) if max(a, b) > 0 else 0.0
    told = f"{a:.0f} s of A, {b:.0f} s of B"
    return Check("time kept", off <= _SECONDS_OFF, told, checked=bool(pairs))


def _offered(log: Log, pairs: Sequence[Pair]) -> Check:
    """New units a second, block against block.

    Requests will not do: a session's next waits for its answer, so a slow arm is sent fewer and
    leaves them to the other. Nor will a chi-square: traffic comes in waves. The first pair counts
    whatever ran before as new, and is left out.
    """
    new: dict[int, int] = defaultdict(int)
    seen: set[int] = set()
    for request in log.requests:
        if request.unit not in seen:
            new[request.block] += 1
        if request.unit is not None:
            seen.add(request.unit)
    steps = []
    for pair in pairs:
        a, b = (new[x.index] / (x.ended_s - x.starts_s) for x in (pair.a, pair.b))
        if pair.a.index > 1 and a > 0 and b > 0:
            steps.append(math.log(b / a))
    if not steps:
        return Check("offered load", True, "too few pairs to tell", checked=False)
    test = paired_test(steps)
    return Check(
        "offered load",
        test.p >= ALARM,
        f"B was offered {math.expm1(test.estimate):+.1%} units/s (p = {test.p:.3g})",
    )


def _alike(log: Log, pairs: Sequence[Pair]) -> list[Check]:
    """Prompts and answers as long under both, by Kolmogorov and Smirnov over units' means."""
    washout_s = log.declaration.washout_s
    a = [request for pair in pairs for request in pair.a.kept(washout_s)]
    b = [request for pair in pairs for request in pair.b.kept(washout_s)]
    return [
        _same_lengths("prompt tokens", a, b, lambda request: request.prompt_tokens),
        _same_lengths("output tokens", a, b, lambda request: request.output_tokens),
    ]


def _same_lengths(
    name: str,
    a: Sequence[RequestLine],
    b: Sequence[RequestLine],
    of: Callable[[RequestLine], int | None],
) -> Check:
    of_a, of_b = _unit_means(a, of), _unit_means(b, of)
    # A session that lived under both arms is no evidence of a difference between them.
    only_a = [mean for unit, mean in of_a.items() if unit not in of_b]
    only_b = [mean for unit, mean in of_b.items() if unit not in of_a]
    if len(only_a) < 2 or len(only_b) < 2:
        return Check(name, True, "not known of enough units", checked=False)
    p = float(stats.ks_2samp(only_a, only_b).pvalue)
    means = [math.fsum(values) / len(values) for values in (only_a, only_b)]
    return Check(
        name, p >= ALARM, f"{means[0]:.0f} a request in A, {means[1]:.0f} in B (p = {p:.3g})"
    )


def _unit_means(
    requests: Sequence[RequestLine], of: Callable[[RequestLine], int | None]
) -> Mapping[object, float]:
    """A request that names no unit is one of its own."""
    found: dict[object, list[int]] = defaultdict(list)
    for place, request in enumerate(requests):
        value = of(request)
        if value is not None:
            found[("", place) if request.unit is None else request.unit].append(value)
    return {unit: math.fsum(values) / len(values) for unit, values in found.items()}
