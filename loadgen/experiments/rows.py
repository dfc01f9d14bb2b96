"""The findings of an experiment in words and table cells, the same in every form of report."""

import math
from collections.abc import Iterator, Sequence

from radixgate.analysis.experiments.balance_checks import Check
from radixgate.analysis.experiments.findings import (
    ArmFigures,
    Findings,
    MetricFinding,
    ShadowFindings,
)
from radixgate.analysis.experiments.peeking import Peek
from radixgate.analysis.experiments.records import Arm

ABSENT = "-"
HOW_TO_READ = (
    "A block counts once, whatever its requests: an outcome a block, a difference a pair, and the "
    "only chance that is reckoned with is the coin that ordered each pair. Effects are B over A: "
    "ratios (from differences of logarithms) for latencies, differences for shares. Brackets hold "
    "95 %: what the randomisation test would not refuse. `p adjusted` is Holm's, over all but the "
    "primary metric. `any time` is the confidence sequence, which alone may be read before the "
    "planned end, or after an early stop. Requests dispatched in a washout count for no arm; those "
    "that waited in a hold have their latency from the dispatch, and the waiting stands under "
    "switches."
)
Section = tuple[str, Sequence[str], list[Sequence[str]]]


def title(findings: Findings) -> str:
    return f"experiment {findings.declaration.experiment} ({findings.declaration.kind})"


def verdict(findings: Findings) -> str:
    """VALID with how many checks passed, INVALID with what failed, or that none could be made."""
    failed = [check.name for check in findings.checks if not check.ok]
    if failed:
        return f"INVALID: {', '.join(failed)}"
    checked = sum(check.checked for check in findings.checks)
    unchecked = len(findings.checks) - checked
    if not findings.checks:
        return "NOT CHECKED: there is nothing that could be"
    if not unchecked:
        return "VALID: every check passed"
    if not checked:
        return f"NOT CHECKED: too little was recorded for any of {unchecked} checks"
    return f"VALID: {checked} checks passed, {unchecked} not checked"


def preamble(findings: Findings) -> Iterator[str]:
    """What was tried, and how it ended."""
    declared = findings.declaration
    for letter, arm in zip("AB", declared.arms, strict=True):
        yield f"{letter} = {arm.name}: {_policy(arm)}"
    if declared.pairs:
        yield (
            f"{findings.pairs} of {declared.pairs} pairs compared; blocks of"
            f" {declared.block_s:g} s, washout {declared.washout_s:g} s, hold up to"
            f" {declared.hold_cap_s:g} s; schedule sha256 {findings.schedule_sha256}"
        )
    yield from findings.dropped
    for trip in findings.trips:
        yield (
            f"guardrail {trip.guardrail} tripped at {trip.t_s:.1f} s: {trip.metric}"
            f" {trip.value:.4g} past {trip.limit:.4g}, over {trip.requests} requests"
        )
    if findings.ended is not None:
        ended = findings.ended
        yield f"ended at {ended.t_s:.1f} s: {ended.reason} {ended.detail}".rstrip()


def sections(findings: Findings) -> Iterator[Section]:
    """Heading, head and rows of each table that has something to show."""
    if findings.metrics:
        yield "Effects", _EFFECT_HEAD, [_effect(metric) for metric in findings.metrics]
        yield (
            "Can it be believed",
            ("metric", "washout x1", "washout x2", "drift p", "carry-over", "5 %", "10 %", "20 %"),
            [_belief(metric) for metric in findings.metrics],
        )
    shown = findings.metrics[0].name if findings.metrics else ""
    if not findings.metrics and findings.declaration.kind != "shadow":
        yield "Arms (no effect estimate)", ("metric", "A", "B"), list(_arms(findings.arms))
    if findings.shadow is not None:
        yield "Decisions", ("", "A", "B", "B on actual"), list(_shadow(findings.shadow))
    peeks = findings.metrics[0].peeks if findings.metrics else []
    if peeks:
        yield (
            f"Any time: {shown}",
            ("pairs", "estimate", "95 % over all looks", "p"),
            [_peek(peek, findings.metrics[0].effect.as_ratio) for peek in _some(peeks)],
        )
    if findings.switches.switches:
        s = findings.switches
        yield (
            "Switches",
            ("holds", "drained", "capped", "requests held", "seconds held", "longest hold"),
            [
                (
                    str(s.switches),
                    str(s.drained),
                    f"{s.capped} ({s.left_in_flight} left)",
                    str(s.held_requests),
                    f"{s.held_s:.1f}",
                    f"{s.longest_hold_s:.1f} s",
                )
            ],
        )
    if findings.checks:
        yield (
            "Checks",
            ("check", "", "found"),
            [(check.name, _outcome(check), check.detail) for check in findings.checks],
        )


_EFFECT_HEAD = ("metric", "A", "B", "effect", "95 %", "p", "p adjusted", "any time", "")


def _outcome(check: Check) -> str:
    if not check.checked:
        return "not checked"
    return "ok" if check.ok else "FAILED"


def _effect(metric: MetricFinding) -> Sequence[str]:
    effect = metric.effect
    test = effect.test
    peek = metric.peeks[-1] if metric.peeks else None
    return (
        f"{metric.name}{' (primary)' if metric.primary else ''}",
        _number(effect.a),
        _number(effect.b),
        _size(test.estimate, effect.as_ratio),
        ABSENT
        if test.interval is None
        else _between(test.interval.low, test.interval.high, effect.as_ratio),
        f"{test.p:.4f}",
        ABSENT if metric.adjusted_p is None else f"{metric.adjusted_p:.4f}",
        ABSENT
        if peek is None
        else _between(peek.interval.low, peek.interval.high, effect.as_ratio),
        {True: "better", False: "WORSE", None: ""}[metric.better],
    )


def _belief(metric: MetricFinding) -> Sequence[str]:
    found, ratio = metric.carry_over, metric.effect.as_ratio
    needed = [str(pairs) for pairs in metric.pairs_for.values()] or [ABSENT] * 3
    if found is None:
        return (metric.name, ABSENT, ABSENT, ABSENT, ABSENT, *needed)
    return (
        metric.name,
        _size(found.estimate, ratio),
        ABSENT if found.estimate_twice is None else _size(found.estimate_twice, ratio),
        ABSENT if found.drift is None else f"{found.drift.p:.4f}",
        "SUSPECTED" if found.suspected else "none seen",
        *needed,
    )


def _peek(peek: Peek, ratio: bool) -> Sequence[str]:
    return (
        str(peek.pairs),
        _size(peek.estimate, ratio),
        _between(peek.interval.low, peek.interval.high, ratio),
        f"{peek.always_valid_p:.4f}",
    )


def _some(peeks: Sequence[Peek]) -> list[Peek]:
    """The first, the last, and a few between."""
    step = max(1, math.ceil(len(peeks) / 8))
    return [peek for place, peek in enumerate(peeks) if place % step == 0 or peek is peeks[-1]]


def _arms(arms: Sequence[ArmFigures]) -> Iterator[Sequence[str]]:
    yield ("requests", *(str(arm.requests) for arm in arms))
    for name in arms[0].figures:
        yield (name, *(_or_absent(arm.figures[name]) for arm in arms))


def _shadow(found: ShadowFindings) -> Iterator[Sequence[str]]:
    yield ("decisions", str(found.decisions), str(found.decisions), ABSENT)
    yield (
        "same worker as A",
        ABSENT,
        f"{found.agreement:.1%}",
        ABSENT if found.agreement_actual is None else f"{found.agreement_actual:.1%}",
    )
    shares = (found.cached_share_a, found.cached_share_b, found.cached_share_b_actual)
    yield (
        "predicted cached share",
        *(ABSENT if share is None else f"{share:.1%}" for share in shares),
    )
    yield (
        "imbalance (max / mean)",
        f"{found.imbalance_a:.3f}",
        f"{found.imbalance_b:.3f}",
        ABSENT,
    )


def _policy(arm: Arm) -> str:
    settings = " ".join(f"{name}={value}" for name, value in sorted(arm.settings.items()))
    return f"{arm.policy} {settings}".rstrip()


def _size(value: float, ratio: bool) -> str:
    return f"{math.expm1(value):+.1%}" if ratio else f"{value:+.4f}"


def _between(low: float, high: float, ratio: bool) -> str:
    return f"[{_size(low, ratio)}, {_size(high, ratio)}]"


def _number(value: float) -> str:
    return f"{value:.4g}"


def _or_absent(value: float | None) -> str:
    return ABSENT if value is None else _number(value)
