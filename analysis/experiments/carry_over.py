"""Whether a block still feels the arm before it, after its washout."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from radixgate.analysis.experiments.blocks import LivedBlock, Pair
from radixgate.analysis.experiments.effects import differences
from radixgate.analysis.experiments.metrics import Metric
from radixgate.analysis.experiments.randomisation import PairedTest, paired_test


@dataclass(frozen=True, slots=True)
class CarryOver:
    """Of one metric."""

    estimate: float  # with the washout as declared, in the unit of the effect
    estimate_twice: float | None  # with twice the washout; None: the blocks are too short
    standard_error: float | None  # of `estimate`; None: fewer than two pairs
    moved: PairedTest | None  # of what each pair changed by with twice the washout; None as above
    # Late half of what a block keeps against its early half, arm B's change less arm A's.
    drift: PairedTest | None  # None: too few requests
    suspected: bool  # the washout is too short, or the switch leaves something behind


def carry_over(
    pairs: Sequence[Pair], metric: Metric, washout_s: float, alarm: float = 0.01
) -> CarryOver | None:
    """None: no pair has the metric.

    Two questions, each answered wrongly in a share `alarm` of the sound experiments. Does the
    estimate move, and by more than its standard error, when twice the washout is cut off? And do
    the arms drift apart within their blocks, which in a steady state they do not?
    """
    first = differences(pairs, metric, washout_s)
    if not first:
        return None
    test = paired_test(first)
    error = None if test.sd is None else test.sd / math.sqrt(test.pairs)
    twice = differences(pairs, metric, 2 * washout_s) if washout_s > 0 else []
    late = math.fsum(twice) / len(twice) if len(twice) == len(first) else None
    changes = []
    for pair in pairs:
        a, b = _change(pair.a, metric, washout_s), _change(pair.b, metric, washout_s)
        if a is not None and b is not None:
            changes.append(b - a)
    moved = (
        None
        if late is None
        else paired_test([after - before for before, after in zip(first, twice, strict=True)])
    )
    drift = paired_test(changes) if changes else None
    far = late is not None and error is not None and abs(late - test.estimate) > error
    return CarryOver(
        estimate=test.estimate,
        estimate_twice=late,
        standard_error=error,
        moved=moved,
        drift=drift,
        suspected=(far and moved is not None and moved.p <= alarm)
        or (drift is not None and drift.p <= alarm),
    )


def _change(block: LivedBlock, metric: Metric, washout_s: float) -> float | None:
    """From the early to the late half of the kept part."""
    middle_s = (block.began_s + washout_s + block.ended_s) / 2.0
    kept = block.kept(washout_s)
    early = metric.of([r for r in kept if r.t_dispatch_s < middle_s])
    late = metric.of([r for r in kept if r.t_dispatch_s >= middle_s])
    return metric.step(early, late)
