"""In which order those who wait are tried: one rule for each `--schedule-policy`."""

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from radixgate.worker.cache.radix_node import Node
from radixgate.worker.requests.sequence import TokenSequence
from radixgate.worker.schedule.kv_memory import KvMemory, Prefix

# Sorts the waiting, first the first to be tried. Must not change while a sequence waits, and no two
# sequences may share a rank: it ends with `arrival`.
Rank = tuple[object, ...]
RankOf = Callable[[TokenSequence], Rank]


def by_arrival(sequence: TokenSequence) -> Rank:
    return sequence.arrival


def longest_output_first(sequence: TokenSequence) -> Rank:
    request = sequence.request
    return (-request.priority, request.prompt_tokens - request.max_len, sequence.arrival)


def at_random(rng: random.Random) -> RankOf:
    """A place drawn once a visit to the queue."""

    def rank(sequence: TokenSequence) -> Rank:
        return (-sequence.request.priority, rng.random(), sequence.arrival)

    return rank


def fixed_ranks(rng: random.Random) -> Mapping[str, RankOf]:
    """The policies that look at nothing but the request; all of them go by priority first."""
    return {
        "fcfs": by_arrival,
        "priority": by_arrival,
        "lof": longest_output_first,
        "random": at_random(rng),
    }


class PrefixOrder(Protocol):
    """A policy that goes by what is cached, so that its order changes with the cache."""

    def __call__(self, waiting: Sequence[TokenSequence]) -> list[TokenSequence]:
        """`waiting`, which come by priority and arrival, first the first to be tried."""
        ...


class LongestPrefixFirst:
    """`lpm`: who finds the most tokens cached comes first.

    Of those who share a prefix that is not cached yet, one keeps its place and the others come
    last, so that it is computed once.
    """

    def __init__(self, memory: KvMemory) -> None:
        self._memory = memory

    def __call__(self, waiting: Sequence[TokenSequence]) -> list[TokenSequence]:
        """O(cached tokens) for each whose lookup the cache has outdated, then O(n log n)."""
        memory = self._memory
        first: set[Prefix] = set()
        followers: set[TokenSequence] = set()
        for sequence in waiting:
            prefix = memory.next_prefix(sequence)
            if prefix in first:
                followers.add(sequence)
            elif prefix is not None:
                first.add(prefix)
        return sorted(
            waiting,
            key=lambda s: (
                -s.request.priority,
                s in followers,
                -memory.found(s).tokens,
                s.arrival,
            ),
        )


class HeaviestBranchFirst:
    """`dfs-weight`: depth first through the cache's tree, first where most of the waiting hang."""

    def __init__(self, memory: KvMemory) -> None:
        self._memory = memory

    def __call__(self, waiting: Sequence[TokenSequence]) -> list[TokenSequence]:
        """O(sum of depths), beside the lookups."""
        paths = {sequence: self._path(sequence) for sequence in waiting}
        weight = Counter(node for path in paths.values() for node in path)

        def place(sequence: TokenSequence) -> Rank:
            # Whoever hangs below a node comes before whoever hangs at it.
            steps = [(-weight[node], node.serial) for node in paths[sequence]]
            return (-sequence.request.priority, [*steps, (math.inf, 0)], sequence.arrival)

        return sorted(waiting, key=place)

    def _path(self, sequence: TokenSequence) -> list[Node]:
        node = self._memory.found(sequence).node
        return [] if node is None else [node.root(), *reversed(list(node.path()))]


PREFIX_ORDERS: Mapping[str, Callable[[KvMemory], PrefixOrder]] = {
    "lpm": LongestPrefixFirst,
    "dfs-weight": HeaviestBranchFirst,
}
