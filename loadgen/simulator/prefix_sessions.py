"""Traffic whose cost depends on routing: conversations that share a few long beginnings."""

import random
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    draw = _Sessions(traffic, rng)
    clients: list[Client] = []
    start = rng.expovariate(traffic.sessions_per_s)
    while start < seconds:
        clients.append(Client(start, draw.next()))
        start += rng.expovariate(traffic.sessions_per_s)
    return Workload(clients)


def crowd_for(traffic: PrefixTraffic, users: int, seconds: float, rng: random.Random) -> Workload:
    """So many users who have one session after the other, with thinking enough for so long.

    `sessions_per_s` is not looked at. They come within the first `think_s`, and each thinks before
    a new session as before a turn. The same rng gives the same.
    """
    draw = _Sessions(traffic, rng)
    clients: list[Client] = []
    for _ in range(users):
        requests: list[TracedRequest] = []
        thought_s = 0.0
        while thought_s < seconds:
            first, *others = draw.next()
            first = replace(first, think_s=rng.expovariate(1.0 / traffic.think_s))
            requests += [first, *others]
            thought_s += first.think_s + sum(request.think_s for request in others)
        clients.append(Client(rng.random() * traffic.think_s, requests))
    return Workload(clients)


class _Sessions:
    """Draws one session after the other; what a turn adds is in no other session."""

    def __init__(self, traffic: PrefixTraffic, rng: random.Random) -> None:
        self._traffic = traffic
        self._rng = rng
        weights = [1.0 / (rank + 1) ** traffic.zipf for rank in range(traffic.groups)]
        self._upto = list(accumulate(weights))
        self._fresh = 1 + traffic.groups * traffic.prefix_blocks
        self._drawn = 0

    def next(self) -> list[TracedRequest]:
        traffic, rng = self._traffic, self._rng
        group = bisect(self._upto, rng.random() * self._upto[-1])
        first = 1 + group * traffic.prefix_blocks
        session: list[TracedRequest] = []
        ids: Sequence[int] = range(first, first + traffic.prefix_blocks)
        while not session or rng.random() < 1.0 - 1.0 / traffic.turns:
            grown = _geometric(traffic.turn_blocks, rng)
            ids = (*ids, *range(self._fresh, self._fresh + grown))
            self._fresh += grown
            session.append(
                TracedRequest(
                    at_s=-1.0,
                    input_tokens=len(ids) * traffic.block_size + rng.randrange(traffic.block_size),
                    output_tokens=_geometric(traffic.output_tokens, rng),
                    ids=ids,
                    session=f"s{self._drawn}",
                    turn=len(session),
                    think_s=rng.expovariate(1.0 / traffic.think_s) if session else 0.0,
                )
            )
        self._drawn += 1
        return session


def _geometric(mean: int, rng: random.Random) -> int:
    """From 1 on, with this mean but for the longest, which are cut to twice it."""
    return min(2 * mean, 1 + int(rng.expovariate(1.0) * (mean - 0.5)))
