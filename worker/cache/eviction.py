"""Which leaf of the radix tree is evicted next: one rule for each `--radix-eviction-policy`."""

from collections.abc import Callable, Mapping

from sortedcontainers import SortedDict

from radixgate.worker.cache.radix_node import Node

# The leaf with the smallest value goes first. The value must not change while a leaf waits in
# line: a node is used only while it is locked, and a locked node stands in no line.
EvictionOrder = Callable[[Node], tuple[int, ...]]

# Used by so many requests, a prefix is one that comes back (`slru`).
_PROTECTED_USES = 2


def least_recently_used(node: Node) -> tuple[int, ...]:
    return (node.last_used,)


def least_often_used(node: Node) -> tuple[int, ...]:
    return (node.uses, node.last_used)


def used_once_first(node: Node) -> tuple[int, ...]:
    return (node.uses >= _PROTECTED_USES, node.last_used)


def oldest_first(node: Node) -> tuple[int, ...]:
    return (node.created,)


def most_recently_used(node: Node) -> tuple[int, ...]:
    return (-node.last_used,)


def newest_first(node: Node) -> tuple[int, ...]:
    return (-node.created,)


def least_important(node: Node) -> tuple[int, ...]:
    return (node.priority, node.last_used)


EVICTION_ORDERS: Mapping[str, EvictionOrder] = {
    "lru": least_recently_used,
    "lfu": least_often_used,
    "slru": used_once_first,
    "fifo": oldest_first,
    "mru": most_recently_used,
    "filo": newest_first,
    "priority": least_important,
}


class EvictionLine:
    """The unlocked leaves in order of eviction. Every change costs O(log leaves)."""

    def __init__(self, order: EvictionOrder) -> None:
        self._order = order
        self._leaves = SortedDict()  # rank -> Node

    def __len__(self) -> int:
        return len(self._leaves)

    def join(self, leaf: Node) -> None:
        leaf.rank = self._rank(leaf)
        self._leaves[leaf.rank] = leaf

    def leave(self, node: Node) -> None:
        """Harmless for a node that is not in line."""
        if node.rank is not None:
            del self._leaves[node.rank]
            node.rank = None

    def first(self) -> Node:
        """There is one, or the caller has miscounted."""
        leaf = self._leaves.peekitem(0)[1]
        assert isinstance(leaf, Node)
        return leaf

    def clear(self) -> None:
        self._leaves.clear()

    def check(self) -> None:
        """Every leaf in line is one, and its rank is still what its order says."""
        for rank, leaf in self._leaves.items():
            assert rank == leaf.rank == self._rank(leaf), "a rank went stale"
            assert leaf.locks == 0, "a locked node is in line for eviction"
            assert not leaf.children, "a node with children is in line for eviction"

    def _rank(self, leaf: Node) -> tuple[int, ...]:
        return (*self._order(leaf), leaf.serial)
