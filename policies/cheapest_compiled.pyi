from collections.abc import Mapping, Sequence

from radixgate.policies.cheapest import Cheapest, Weights

def cheapest(
    weights: Weights,
    prompt_tokens: int,
    waiting: Sequence[int],
    cached: Sequence[int],
    requests: Sequence[int],
    speeds: Sequence[float],
    pressure_s: Mapping[int, float],
    /,
) -> Cheapest: ...
