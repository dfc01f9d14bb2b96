"""All that may be said of an experiment, from its records alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from radixgate.analysis.experiments.balance_checks import Check, split_checks, switchback_checks
from radixgate.analysis.experiments.blocks import Log, Pair, lived_blocks, pairs_of
from radixgate.analysis.experiments.carry_over import CarryOver, carry_over
from radixgate.analysis.experiments.effects import Effect, differences, effect_of, holm
from radixgate.analysis.experiments.metrics import Metric, metrics_of
from radixgate.analysis.experiments.peeking import Peek, confidence_sequence
from radixgate.analysis.experiments.power import pairs_needed
from radixgate.analysis.experiments.records import (
    BlockEvent,
    Declaration,
    ExperimentEnd,
    GuardrailTrip,
)

# Of a ratio 5, 10 and 20 %; of a share as many points.
EFFECTS = (0.05, 0.10, 0.20)
# How often one of the metrics of a sound experiment is suspected by each of the two looks.
CARRIED = 0.02
NO_EFFECT = (
    "NOT AN EFFECT ESTIMATE: the arms shared caches and queues, or had fleets of different size, so"
    " each changed what the other measured. The numbers describe, and guard against harm."
)


@dataclass(frozen=True, slots=True)
class MetricFinding:
    """One metric of a switchback."""

    name: str
    unit: str
    formula: str
    primary: bool
    better: bool | None  # B's; None: its interval holds no effect, or there is none
    effect: Effect
    adjusted_p: float | None  # Holm's, over the secondary ones; None: the primary one
    carry_over: CarryOver | None
    peeks: Sequence[Peek]  # [] for fewer than ten pairs
    pairs_for: Mapping[str, int]  # by effect; empty: the spread is not known


@dataclass(frozen=True, slots=True)
class Switches:
    """What changing arms cost."""

    switches: int  # holds
    drained: int
    capped: int
    left_in_flight: int  # over the capped ones
    held_requests: int
    held_s: float  # summed over the requests that waited
    longest_hold_s: float
    forgotten: int  # entries of the mirror


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """An arm's figures over all of its kept requests; no effect follows from them."""

    arm: str
    requests: int
    figures: Mapping[str, float | None]  # by metric; None: nothing to measure


@dataclass(frozen=True, slots=True)
class ShadowFindings:
    """What B would have done. Nothing follows for latency."""

    decisions: int
    agreement: float  # share of requests that B would have sent where A did
    agreement_actual: float | None  # the same with a mirror of the actual placements
    cached_share_a: float | None  # predicted, of the prompt tokens; None: there were none
    cached_share_b: float | None
    cached_share_b_actual: float | None
    imbalance_a: float  # mean over the decisions
    imbalance_b: float


@dataclass(frozen=True, slots=True)
class Findings:
    """The content of every report of an experiment."""

    declaration: Declaration
    schedule_sha256: str | None  # as committed; None: the experiment has no blocks
    ended: ExperimentEnd | None  # None: it runs on, or was cut off
    # False: a check failed. True: at least one was made, and none failed. None: none was, as too
    # little was recorded or as this kind has none, which says nothing of the experiment.
    valid: bool | None
    checks: Sequence[Check]
    warnings: Sequence[str]
    pairs: int
    dropped: Sequence[str]  # pairs that are not compared, each with the reason
    metrics: Sequence[MetricFinding]  # [] where there is no effect to estimate
    arms: Sequence[ArmFigures]
    switches: Switches
    shadow: ShadowFindings | None
    trips: Sequence[GuardrailTrip]
    # Stopped early, so intervals that were meant for a fixed number of pairs do not hold.
    use_sequence: bool


def findings_of(log: Log) -> Findings:
    """Pure: the same records give the same findings."""
    declaration = log.declaration
    switchback = declaration.kind == "switchback"
    metrics = metrics_of(declaration)
    pairs, dropped = pairs_of(log) if switchback else ([], [])
    checks = _checks(log, pairs)
    found = _metric_findings(pairs, metrics, declaration) if switchback else []
    stopped = bool(log.trips) or (log.end is not None and log.end.reason != "finished")
    return Findings(
        declaration=declaration,
        schedule_sha256=None if log.schedule is None else log.schedule.sha256,
        ended=log.end,
        valid=_valid(checks),
        checks=checks,
        warnings=_warnings(log, pairs, found),
        pairs=len(pairs),
        dropped=dropped,
        metrics=found,
        arms=[_arm_figures(log, arm.name, metrics) for arm in declaration.arms],
        switches=switches_of(log.events),
        shadow=shadow_of(log) if log.decisions else None,
        trips=log.trips,
        use_sequence=switchback and stopped,
    )


def switches_of(events: Sequence[BlockEvent]) -> Switches:
    """Summed over all of them."""
    over = [event for event in events if event.moment in ("drained", "capped")]
    return Switches(
        switches=len(over),
        drained=sum(event.moment == "drained" for event in over),
        capped=sum(event.moment == "capped" for event in over),
        left_in_flight=sum(event.left for event in over),
        held_requests=sum(event.held for event in over),
        held_s=math.fsum(event.held_s for event in over),
        longest_hold_s=max((event.hold_s for event in over), default=0.0),
        forgotten=sum(event.forgotten for event in events if event.moment == "reset"),
    )


def shadow_of(log: Log) -> ShadowFindings:
    """Raises ZeroDivisionError if there is no decision."""
    decisions = log.decisions
    n = len(decisions)
    actual = [d for d in decisions if d.chosen_b_actual is not None]
    prompt = sum(d.prompt_tokens for d in decisions)
    prompt_actual = sum(d.prompt_tokens for d in actual)
    cached_actual = sum(d.predicted_cached_b_actual or 0 for d in actual)
    return ShadowFindings(
        decisions=n,
        agreement=sum(d.chosen_a == d.chosen_b for d in decisions) / n,
        agreement_actual=(
            sum(d.chosen_a == d.chosen_b_actual for d in actual) / len(actual) if actual else None
        ),
        cached_share_a=sum(d.predicted_cached_a for d in decisions) / prompt if prompt else None,
        cached_share_b=sum(d.predicted_cached_b for d in decisions) / prompt if prompt else None,
        cached_share_b_actual=cached_actual / prompt_actual if prompt_actual else None,
        imbalance_a=math.fsum(d.imbalance_a for d in decisions) / n,
        imbalance_b=math.fsum(d.imbalance_b for d in decisions) / n,
    )


def _checks(log: Log, pairs: Sequence[Pair]) -> list[Check]:
    match log.declaration.kind:
        case "switchback":
            return switchback_checks(log, lived_blocks(log), pairs)
        case "canary" | "bucket":
            return split_checks(log)
        case "shadow":
            return []


def _valid(checks: Sequence[Check]) -> bool | None:
    if not all(check.ok for check in checks):
        return False
    return True if any(check.checked for check in checks) else None


def _metric_findings(
    pairs: Sequence[Pair], metrics: Sequence[Metric], declaration: Declaration
) -> list[MetricFinding]:
    washout_s = declaration.washout_s
    effects = [(m, e) for m in metrics if (e := effect_of(pairs, m, washout_s)) is not None]
    secondary = [effect.test.p for metric, effect in effects if metric is not metrics[0]]
    adjusted = iter(holm(secondary))
    return [
        MetricFinding(
            name=metric.name,
            unit=metric.unit,
            formula=metric.formula,
            primary=metric is metrics[0],
            better=_better(effect, metric),
            effect=effect,
            adjusted_p=None if metric is metrics[0] else next(adjusted),
            carry_over=carry_over(pairs, metric, washout_s, CARRIED / len(effects)),
            peeks=confidence_sequence(
                differences(pairs, metric, washout_s), planned=declaration.pairs
            ),
            pairs_for=_pairs_for(effect),
        )
        for metric, effect in effects
    ]


def _better(effect: Effect, metric: Metric) -> bool | None:
    found = effect.test.interval
    if found is None or found.low <= 0.0 <= found.high:
        return None
    return effect.test.estimate * metric.better > 0


def _pairs_for(effect: Effect) -> Mapping[str, int]:
    sd = effect.test.sd
    if not sd:
        return {}
    if effect.as_ratio:
        return {f"{size:.0%}": pairs_needed(math.log1p(size), sd) for size in EFFECTS}
    return {f"{size:g}": pairs_needed(size, sd) for size in EFFECTS}


def _arm_figures(log: Log, arm: str, metrics: Sequence[Metric]) -> ArmFigures:
    kept = [r for r in log.requests if r.arm == arm and not r.washout]
    return ArmFigures(arm, len(kept), {metric.name: metric.of(kept) for metric in metrics})


def _warnings(log: Log, pairs: Sequence[Pair], found: Sequence[MetricFinding]) -> list[str]:
    declaration = log.declaration
    told: list[str] = []
    if log.end is None:
        told.append("no end is recorded: the experiment runs on, or was cut off")
    if declaration.kind in ("canary", "bucket"):
        return [NO_EFFECT, *told]
    if declaration.kind == "shadow":
        return ["B only decided; nothing follows for latency", *told]
    told += [f"carry-over is suspected in {m.name}" for m in found if _suspected(m)]
    if not declaration.resets_mirror:
        told.append("the mirror was not reset at the switches: the arms misled each other")
    if not declaration.hold_cap_s:
        told.append("dispatch was not held at the switches: each arm inherited a backlog")
    capped = switches_of(log.events).capped
    if capped:
        told.append(f"{capped} holds ended at their cap, with requests still in flight")
    if declaration.block_s < 2 * declaration.washout_s:
        told.append("blocks are shorter than twice their washout")
    longest = max((e.hold_s for e in log.events), default=0.0)
    if longest > 0.1 * declaration.block_s:
        told.append(f"a hold took {longest:.1f} s of a block of {declaration.block_s:g} s")
    if len(pairs) < 6:
        told.append(f"{len(pairs)} pairs: no p-value can be below 5 % with fewer than 6")
    return told


def _suspected(metric: MetricFinding) -> bool:
    return metric.carry_over is not None and metric.carry_over.suspected
