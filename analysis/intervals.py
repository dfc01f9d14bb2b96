"""How far a share, and a mean of paired differences, can be trusted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_Z95 = 1.959964
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
