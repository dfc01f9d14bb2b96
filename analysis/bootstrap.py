"""How far means and percentiles of a run can be trusted: intervals by block bootstrap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from radixgate.analysis.intervals import Interval

# Blocks of consecutive requests are drawn, not requests: neighbours share queues and caches, so
# they are no independent evidence. With fewer blocks than this the interval itself is a guess.
FEWEST_BLOCKS = 30
_DRAWS = 200
_SEED = 20_230_517


@dataclass(frozen=True, slots=True)
class BlockIntervals:
    """Intervals of one set of measurements."""

    mean: Interval
    percentiles: Mapping[float, Interval]  # by q, as asked


def by_blocks(
    groups: Sequence[Sequence[float]], percentiles: Sequence[float] = ()
) -> BlockIntervals | None:
    """Block bootstrap over measurements in the order they were made, one group a request.

    Consecutive requests form blocks, 30 at least and the root of their number at most; blocks are
    drawn with replacement, always by the same seed. A drawn percentile is the smallest value with
    q % of the draw at or below it. None: fewer than 30 requests have a value.
    O(draws * values).
    """
    filled = [group for group in groups if len(group)]
    if len(filled) < FEWEST_BLOCKS:
        return None
    blocks = max(FEWEST_BLOCKS, int(len(filled) ** 0.5))
    block_of_group = np.arange(len(filled)) * blocks // len(filled)
    block_of_value = np.repeat(block_of_group, [len(group) for group in filled])
    values = np.concatenate([np.asarray(group, dtype=np.float64) for group in filled])
    order = np.argsort(values, kind="stable")
    ordered, block_of_ordered = values[order], block_of_value[order]
    sums = np.bincount(block_of_value, weights=values, minlength=blocks)
    sizes = np.bincount(block_of_value, minlength=blocks)
    rng = np.random.Generator(np.random.PCG64(_SEED))
    means = np.empty(_DRAWS)
    drawn = np.empty((len(percentiles), _DRAWS))
    for draw in range(_DRAWS):
        times = np.bincount(rng.integers(0, blocks, blocks), minlength=blocks)
        means[draw] = (times @ sums) / (times @ sizes)
        if percentiles:
            upto = np.cumsum(times[block_of_ordered])
            wanted = np.asarray(percentiles) / 100.0 * upto[-1]
            places = np.minimum(np.searchsorted(upto, wanted), len(ordered) - 1)
            drawn[:, draw] = ordered[places]
    return BlockIntervals(
        _middle_95(means),
        {q: _middle_95(row) for q, row in zip(percentiles, drawn, strict=True)},
    )


def _middle_95(draws: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> Interval:
    low, high = np.percentile(draws, [2.5, 97.5])
    return Interval(float(low), float(high))
