"""How far a figure can be trusted: Wilson's interval of a share, and bootstrapped ones."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# Blocks of consecutive requests are drawn, not requests: neighbours share queues and caches, so
# they are no independent evidence. With fewer blocks than this the interval itself is a guess.
FEWEST_BLOCKS = 30
_DRAWS = 200
_Z95 = 1.959964
_SEED = 20_230_517
# Two-sided 95 % quantiles of Student's t, for 1 to 30 degrees of freedom.
_T95 = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval, in the unit of its figure."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class BlockIntervals:
    """Intervals of one set of measurements."""

    mean: Interval
    percentiles: Mapping[float, Interval]  # by q, as asked


def wilson(good: int, of: int) -> Interval:
    """Of the share `good / of`; from 0 to 1 if there was nothing. Raises ValueError if over all."""
    if not 0 <= good <= of:
        raise ValueError(f"{good} of {of} is no share")
    if of == 0:
        return Interval(0.0, 1.0)
    share, z2 = good / of, _Z95 * _Z95
    middle = share + z2 / (2 * of)
    reach = _Z95 * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of))
    scale = 1 + z2 / of
    return Interval(max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale))


def paired(differences: Sequence[float]) -> Interval | None:
    """Student's interval of the mean of paired differences; None for fewer than two pairs."""
    n = len(differences)
    if n < 2:
        return None
    mean = math.fsum(differences) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in differences) / (n - 1))
    quantile = _T95[n - 2] if n - 2 < len(_T95) else _Z95
    reach = quantile * spread / math.sqrt(n)
    return Interval(mean - reach, mean + reach)


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
    blocks = max(FEWEST_BLOCKS, math.isqrt(len(filled)))
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
