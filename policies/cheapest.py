"""What each candidate costs in seconds, and which are the cheapest.

(waiting + own x weight) / speed + pressure, where `own` are the prompt's tokens that are to be
computed, and `weight` is what a second of prefill costs all who are concerned (`Weights`).
Compiled (`cheapest_compiled.c`) it is one call and 10 ns a candidate; where this was installed
without a compiler the same is done in passes over the columns, and takes ten times as long.
"""

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import add, mul, sub, truediv
from typing import NamedTuple

__all__ = ["COMPILED", "Cheapest", "Weights", "cheapest", "cheapest_in_python", "ranked"]


class Weights(NamedTuple):
    """Of the terms. A tuple, which compiled code reads by place.

    Requests at a worker count as the fleet's mean does, so that the weight of a miss grows with the
    backlog and is the same wherever there is a crowd; where they are less than the mean by more
    than a factor of `idle`, so many times their own. What lies far beyond the mean is dear.
    """

    stall: float  # a second of prefill costs so much more for each request in flight
    crowd: float  # and so much more at a worker with twice the mean of the requests
    idle: float = 4.0
    few: float = 4.0  # among few requests a difference of one is no crowd
    # A worker is overcrowded beyond the mean and six times its root, which chance does not bring
    # together, and 16 at least. Hardly anything that it has cached is worth it: each request beyond
    # costs as much as the computation of so many prompt tokens.
    crowd_lead: float = 16.0
    crowd_deviations: float = 6.0
    crowded_tokens: float = 20_000.0
    # Costs so close are equal: 2 % and a millisecond.
    equal_share: float = 0.02
    equal_s: float = 0.001


# Each candidate's seconds, 8 bytes each; the least of them; the rising indices of those that cost
# as much; the first of these with most cached; and how many of all have as much cached as that one.
Cheapest = tuple[bytes, float, Sequence[int], int, int]


def cheapest_in_python(
    weights: Weights,
    prompt_tokens: int,
    waiting: Sequence[int],
    cached: Sequence[int],
    requests: Sequence[int],
    speeds: Sequence[float],
    pressure_s: Mapping[int, float],
    /,
) -> Cheapest:
    """Of at least one candidate; columns by index, `pressure_s` as far as there is any.

    O(candidates). All numbers are ints up to 2**53, where a double counts whole ones, or floats.
    Raises ValueError if there are no candidates, the columns are of unequal lengths, `pressure_s`
    is of an index that is none, or a number is out of its range: weights, the mean of `requests`
    and what costs come to are finite and not below zero, `few` and speeds are over zero. That a
    single number of requests is not below zero is not looked at. TypeError for no numbers.
    """
    if not len(cached):
        raise ValueError("nobody is the cheapest of none")
    if not len(waiting) == len(cached) == len(requests) == len(speeds):
        raise ValueError("the columns are of unequal lengths")
    _check(weights, cached, speeds)
    factors, crowded = _by_requests(weights, requests)
    before: Iterable[float] = waiting
    if crowded:
        before = map(add, waiting, map(crowded.get, requests, repeat(0.0)))
    own: Iterable[int] = map(sub, repeat(prompt_tokens), cached)
    if prompt_tokens - max(cached) < 1:  # its last token is always computed
        own = [max(1, tokens) for tokens in own]
    weighted = map(mul, own, map(factors.__getitem__, requests))
    costs = list(map(truediv, map(add, before, weighted), speeds))
    for index, seconds in pressure_s.items():
        if not 0 <= index < len(costs):
            raise ValueError("pressure is on none of them")
        costs[index] += seconds
    return ranked(weights, costs, cached)


def ranked(weights: Weights, costs: Sequence[float], cached: Sequence[int]) -> Cheapest:
    """The same where the costs are known. Raises ValueError for one that is infinite, or below
    zero."""
    least = min(costs)
    if not (least >= 0.0 and _finite(costs)):
        raise ValueError("costs are finite and not below zero")
    limit = least * (1.0 + weights.equal_share) + weights.equal_s
    equals = [index for index, cost in enumerate(costs) if cost <= limit]
    warmest = max(equals, key=cached.__getitem__)
    here = cached[warmest]
    holders = len([tokens for tokens in cached if tokens >= here])
    return array("d", costs).tobytes(), least, equals, warmest, holders


def _by_requests(
    weights: Weights, requests: Sequence[int]
) -> tuple[dict[int, float], dict[int, float]]:
    """By the requests of a worker, of which mostly few differ: how many seconds a second of prefill
    there costs all who are concerned; and where there is a crowd, the tokens it counts for."""
    mean = sum(requests) / len(requests)
    if not 0.0 <= mean < math.inf:
        raise ValueError("requests are finite and not below zero")
    crowd = weights.crowd / (mean + weights.few)
    full = mean + max(weights.crowd_lead, weights.crowd_deviations * math.sqrt(mean))
    factors, crowded = {}, {}
    for count in set(requests):
        factor = 1.0 + weights.stall * min(mean, weights.idle * count)
        if count > mean:
            factor += crowd * (count - mean)
        if count > full:
            crowded[count] = weights.crowded_tokens * (count - full)
        factors[count] = factor
    return factors, crowded


def _check(weights: Weights, cached: Sequence[int], speeds: Sequence[float]) -> None:
    if not (min(weights) >= 0.0 and _finite(weights)):
        raise ValueError("weights are finite and not below zero")
    if not weights.few > 0.0:
        raise ValueError("few is over zero")
    if not _finite(cached):
        raise ValueError("what is cached is finite")
    if not (min(speeds) > 0.0 and _finite(speeds)):
        raise ValueError("speeds are finite and over zero")


def _finite(values: Sequence[float]) -> bool:
    """Their sum tells at once, unless it is too much itself."""
    return math.isfinite(sum(values)) or all(map(math.isfinite, values))


try:
    from radixgate.policies.cheapest_compiled import cheapest
except ImportError:
    cheapest = cheapest_in_python
COMPILED = cheapest is not cheapest_in_python
