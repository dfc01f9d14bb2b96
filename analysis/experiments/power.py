"""How many pairs an effect of a given size would need."""

import math

from scipy import stats

# Two-sided 5 %, four times in five.
ALPHA, POWER = 0.05, 0.80


def pairs_needed(effect: float, sd: float, alpha: float = ALPHA, power: float = POWER) -> int:
    """`(z + z')^2 sd^2 / effect^2`, rounded up; sd of one paired difference, both in one unit.

    At least the pairs with which the randomisation test can refuse anything: 6 at 5 %. Raises
    ValueError for an effect of 0, which no number of pairs would show.
    """
    if effect == 0.0:
        raise ValueError("an effect of 0 cannot be found")
    z = float(stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power))
    return max(fewest_pairs(alpha), math.ceil((z * sd / effect) ** 2))


def fewest_pairs(alpha: float = ALPHA) -> int:
    """With n pairs no p-value lies below 2 / 2**n."""
    return math.ceil(math.log2(2.0 / alpha))
