"""What may be said of an effect from the coins of the schedule alone: p-value and interval.

Nothing is assumed of how requests depend on one another, nor of any distribution: only that each
pair's order was drawn by a fair coin.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from radixgate.analysis.intervals import Interval

# Up to so many pairs all orders are gone through; beyond, so many are drawn.
EXACT_UP_TO = 14
DRAWS = 9_999
_SEED = 20_260_101
# Sums of the same numbers in another order differ in the last digits.
_TIE = 1e-12


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Of the paired differences B - A."""

    pairs: int
    estimate: float  # their mean
    sd: float | None  # of one difference; None: fewer than two pairs
    p: float  # two-sided
    interval: Interval | None  # 95 %, by inverting the test; None: under 6 pairs it is endless
    exact: bool  # all orders, or DRAWS of them


def paired_test(differences: Sequence[float], alpha: float = 0.05) -> PairedTest:
    """The test that the arms are alike, against every other way the coins could have fallen.

    `p` = share of the 2**n orders whose mean is at least as far from 0 as the one that was lived;
    where orders are drawn, (1 + those) / (1 + drawn). The interval holds every shift of arm B that
    this test would not refuse. O(2**n * n) up to 14 pairs, O(DRAWS * n) beyond. Raises ValueError
    without a pair.
    """
    n = len(differences)
    if n == 0:
        raise ValueError("no pairs, so no test")
    d = np.asarray(differences, dtype=np.float64)
    estimate = math.fsum(differences) / n
    exact = n <= EXACT_UP_TO
    signs = _all_signs(n) if exact else _drawn_signs(n)
    scale = float(np.abs(d).max()) or 1.0
    as_far = int(np.count_nonzero(np.abs(signs @ d) / n >= abs(estimate) - _TIE * scale))
    count = len(signs)
    p = as_far / count if exact else (1 + as_far) / (1 + count)
    sd = float(d.std(ddof=1)) if n > 1 else None
    return PairedTest(n, estimate, sd, p, _interval(d, signs, exact, alpha), exact)


def _interval(
    d: NDArray[np.float64], signs: NDArray[np.float64], exact: bool, alpha: float
) -> Interval | None:
    """An order s accepts the shift x if |mean(s (d - x))| >= |mean(d - x)|: that is, if x lies
    between the mean of the differences it keeps and the mean of those it turns. So each order has
    an interval, all hold the estimate, and x is refused when too few of them reach it."""
    kept = signs > 0
    sizes = kept.sum(axis=1)
    n = len(d)
    whole = (sizes == 0) | (sizes == n)  # reaches everything
    of_kept = np.where(whole, 0.0, (kept @ d) / np.maximum(sizes, 1))
    of_turned = np.where(whole, 0.0, (d.sum() - kept @ d) / np.maximum(n - sizes, 1))
    lows = np.where(whole, -np.inf, np.minimum(of_kept, of_turned))
    highs = np.where(whole, np.inf, np.maximum(of_kept, of_turned))
    # Orders that must reach x for p > alpha; a drawn set counts the lived order besides.
    total = len(signs) if exact else len(signs) + 1
    needed = math.floor(alpha * total) + 1 - (0 if exact else 1)
    if needed < 1 or needed > len(signs):
        return None
    low = float(np.sort(lows)[needed - 1])
    high = float(np.sort(highs)[len(highs) - needed])
    return Interval(low, high) if math.isfinite(low) and math.isfinite(high) else None


def _all_signs(n: int) -> NDArray[np.float64]:
    bits = (np.arange(2**n)[:, None] >> np.arange(n)[None, :]) & 1
    return _as_signs(bits)


def _drawn_signs(n: int) -> NDArray[np.float64]:
    rng = np.random.Generator(np.random.PCG64(_SEED))
    return _as_signs(rng.integers(0, 2, (DRAWS, n)))


def _as_signs(bits: NDArray[np.int64]) -> NDArray[np.float64]:
    return 2.0 * bits.astype(np.float64) - 1.0
