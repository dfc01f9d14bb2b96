"""Traffic whose cost depends on routing: conversations that share a few long beginnings."""

import random
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from radixgate.loadgen.simulator.trace import TracedRequest
from radixgate.loadgen.simulator.workload import Client, Workload


@dataclass(frozen=True, slots=True)
class PrefixTraffic:
    """Sessions come open loop; within one, a turn waits for the answer before it."""

    sessions_per_s: float
    groups: int  # prefixes there are; the n-th is asked for in proportion to 1 / n ** zipf
    zipf: float
    prefix_blocks: int
    turns: float  # of a session, on average: each turn is the last with the same chance
    turn_blocks: int  # that a turn adds on average, one at least: the question and what was said
    output_tokens: int  # on average, before the longest are cut to twice that; one at least
    think_s: float  # on average, before a turn that is not the first
    block_size: int


def sessions_for(traffic: PrefixTraffic, seconds: float, rng: random.Random) -> Workload:
    """All that begins within so many seconds. The same rng gives the same."""
    weights = [1.0 / (rank + 1) ** traffic.zipf for rank in range(traffic.groups)]
    upto = list(accumulate(weights))
    fresh = 1 + traffic.groups * traffic.prefix_blocks
    clients: list[Client] = []
    start = rng.expovariate(traffic.sessions_per_s)
    while start < seconds:
        group = bisect(upto, rng.random() * upto[-1])
        first = 1 + group * traffic.prefix_blocks
        session: list[TracedRequest] = []
        ids: Sequence[int] = range(first, first + traffic.prefix_blocks)
        while not session or rng.random() < 1.0 - 1.0 / traffic.turns:
            grown = _geometric(traffic.turn_blocks, rng)
            ids = (*ids, *range(fresh, fresh + grown))
            fresh += grown
            session.append(
                TracedRequest(
                    at_s=-1.0,
                    input_tokens=len(ids) * traffic.block_size + rng.randrange(traffic.block_size),
                    output_tokens=_geometric(traffic.output_tokens, rng),
                    ids=ids,
                    session=f"s{len(clients)}",
                    turn=len(session),
                    think_s=rng.expovariate(1.0 / traffic.think_s) if session else 0.0,
                )
            )
        clients.append(Client(start, session))
        start += rng.expovariate(traffic.sessions_per_s)
    return Workload(clients)


def _geometric(mean: int, rng: random.Random) -> int:
    """From 1 on, with this mean but for the longest, which are cut to twice it."""
    return min(2 * mean, 1 + int(rng.expovariate(1.0) * (mean - 0.5)))
