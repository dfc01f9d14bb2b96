"""The prefix cache: a radix tree over token ids in whole pages, with locks and eviction."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from radixgate.proto.blocks import chain, root_id
from radixgate.proto.kv_events import KvEvent, Removed, Stored
from radixgate.worker.cache.eviction import EvictionLine, EvictionOrder, least_recently_used
from radixgate.worker.cache.pages import PagePool
from radixgate.worker.cache.radix_node import TOKEN_BYTES, Namespace, Node


@dataclass(frozen=True, slots=True)
class Prefix:
    """What the tree holds of a prompt: `pages` in order, and the node where they end, locked."""

    node: Node
    pages: list[int]


@dataclass(frozen=True, slots=True)
class Insertion:
    """Where a request stands after an insert.

    `pages` are the tree's pages for the tokens given, `duplicates` those of the caller that the
    tree did not take because it held the same tokens already. The caller first puts `pages` in
    its page table, then gives `duplicates` back to the pool.
    """

    node: Node
    pages: list[int]
    duplicates: list[int]


class RadixCache:
    """Finds, keeps and evicts prefixes. It owns the pages in it; the pool gets back what it evicts.

    Tokens are compared, never ids or hashes. Every page is either locked (a request uses its node
    or one below) or evictable. With `enabled` False it finds and keeps nothing.
    """

    def __init__(
        self,
        pool: PagePool,
        *,
        page_size: int,
        weights_id: str,
        emit: Callable[[KvEvent], None],
        order: EvictionOrder = least_recently_used,
        enabled: bool = True,
    ) -> None:
        """`emit` is told of every change, in order."""
        self.evictable = 0  # pages
        self.locked = 0  # pages
        self.evicted_pages_total = 0
        self.version = 0  # grows whenever a lookup may find something else than before
        self._pool = pool
        self._page_size = page_size
        self._page_bytes = page_size * TOKEN_BYTES
        self._weights_id = weights_id
        self._enabled = enabled
        self._emit = emit
        self._roots: dict[Namespace, Node] = {}
        self._line = EvictionLine(order)
        self._ticks = 0
        self._serials = 0

    @property
    def namespaces(self) -> int:
        """How many namespaces have a tree."""
        return len(self._roots)

    # ------------------------------------------------------------------ finding

    def cached_tokens(self, namespace: Namespace, tokens: bytes) -> int:
        """How many tokens `match` would find. Changes nothing. O(tokens) bytes compared."""
        return self.look_up(namespace, tokens)[0]

    def look_up(self, namespace: Namespace, tokens: bytes) -> tuple[int, int, Node | None]:
        """How many tokens `match` would find, the id of their last block, and the node they end in.

        Nothing found: the root's id, and the root; None if there is not even one.
        """
        root = self._roots.get(namespace)
        if root is None:
            return 0, root_id(self._weights_id, namespace.adapter, namespace.salt), None
        pages, block, node = 0, root.last_block_id, root
        for node, count in self._walk(root, tokens):
            pages += count
            block = node.block_ids[count - 1]
        return pages * self._page_size, block, node

    def match(self, namespace: Namespace, tokens: bytes) -> Prefix:
        """The longest cached prefix, locked; `unlock` its node when done.

        Never covers the last token, so that there is always something to compute logits from.
        """
        self._ticks += 1
        node = self._root(namespace)
        pages: list[int] = []
        for child, count in self._walk(node, tokens):
            node = child if count == len(child.pages) else self._split(child, count)
            pages += node.pages
        self._lock(node)
        return Prefix(node, pages)

    # ------------------------------------------------------------------ keeping

    def insert(
        self, held: Node, tokens: bytes, pages: list[int], *, priority: int = 0
    ) -> Insertion:
        """Hang whole pages below `held`, which the caller has locked; the lock moves to the end.

        O(len(tokens) + depth). `priority` is the request's, for eviction.
        """
        assert len(tokens) == len(pages) * self._page_bytes, "only whole pages can be kept"
        if not self._enabled or not pages:
            return Insertion(held, pages, [])
        self._ticks += 1
        node, done = held, 0
        tree_pages: list[int] = []
        for child, count in self._walk(held, tokens, keep_last=False):
            node = child if count == len(child.pages) else self._split(child, count)
            tree_pages += node.pages
            done += count
        if done < len(pages):
            node = self._hang(node, tokens[done * self._page_bytes :], pages[done:])
            node.priority = priority
        self._lock(node)
        node.used_by(priority, another=False)
        self.unlock(held)
        return Insertion(node, tree_pages + pages[done:], pages[:done])

    def unlock(self, node: Node) -> None:
        """One user of `node` less; what nobody uses any more may be evicted. O(depth)."""
        for above in node.path():
            assert above.locks > 0, "a node is unlocked more often than locked"
            above.locks -= 1
            if above.locks == 0:
                self.locked -= len(above.pages)
                self.evictable += len(above.pages)
                self._queue(above)
        root = node.root()
        root.locks -= 1
        self._drop_if_bare(root)

    # ------------------------------------------------------------------ dropping

    def evict(self, pages: int) -> None:
        """Give `pages` evictable pages back to the pool, leaves first, from their ends.

        O(log leaves) a leaf. The caller has checked that `evictable` suffices.
        """
        assert pages <= self.evictable, f"{pages} pages wanted, {self.evictable} evictable"
        while pages > 0:
            leaf = self._line.first()
            count = min(pages, len(leaf.pages))
            self._cut_off(leaf, count)
            pages -= count

    def clear(self) -> None:
        """Forget everything, and say nothing of it: the caller announces the whole as one.

        Only while nothing is locked. The pages are free again.
        """
        assert self.locked == 0, f"{self.locked} pages are in use"
        for node in self._nodes():
            self._pool.give_back(node.pages)
        self.forget()

    def forget(self) -> None:
        """As if it were new: for a tree in which something is wrong. The pages are the caller's."""
        self._roots.clear()
        self._line.clear()
        self.version += 1
        self.evictable = self.locked = 0

    def check(self) -> None:
        """Counters, locks, the line for eviction and the shape of the tree agree. O(tree)."""
        self._line.check()
        locked = evictable = leaves = 0
        seen: set[int] = set()
        for node in self._nodes():
            node.check(self._page_size)
            assert seen.isdisjoint(node.pages), "a page stands in two nodes"
            seen.update(node.pages)
            if node.locks:
                locked += len(node.pages)
            else:
                evictable += len(node.pages)
                leaves += not node.children
        assert (locked, evictable) == (self.locked, self.evictable), "a page counter is off"
        assert leaves == len(self._line), "an evictable leaf is not in line"

    def pages_held(self) -> list[int]:
        """Every page in the tree. O(tree); for checks."""
        return [page for node in self._nodes() for page in node.pages]

    # ------------------------------------------------------------------ inside

    def _walk(
        self, node: Node, tokens: bytes, *, keep_last: bool = True
    ) -> Iterator[tuple[Node, int]]:
        """Each node on the way down and how many of its pages match; the last may match in part.

        The caller may split the node it was given before it asks for the next.
        """
        size = self._page_bytes
        end = (len(tokens) - TOKEN_BYTES if keep_last else len(tokens)) // size * size
        start = 0
        while start < end:
            child = node.children.get(tokens[start : start + size])
            if child is None:
                return
            whole = len(child.pages)
            count = min(child.common_pages(tokens, start, size), (end - start) // size)
            yield child, count
            if count < whole:
                return
            node, start = child, start + count * size

    def _root(self, namespace: Namespace) -> Node:
        root = self._roots.get(namespace)
        if root is None:
            own_id = root_id(self._weights_id, namespace.adapter, namespace.salt)
            root = Node(None, b"", [], array("Q", [own_id]), self._next_serial())
            root.namespace = namespace
            self._roots[namespace] = root
        return root

    def _hang(self, parent: Node, tokens: bytes, pages: list[int]) -> Node:
        ids = chain(parent.last_block_id, array("I", tokens), self._page_size)
        node = Node(parent, tokens, pages, ids, self._next_serial())
        node.created = self._ticks
        self._line.leave(parent)
        parent.children[tokens[: self._page_bytes]] = node
        self.version += 1
        self.evictable += len(pages)  # until the caller locks it
        self._emit(Stored(parent.last_block_id, ids))
        return node

    def _split(self, node: Node, pages: int) -> Node:
        return node.split(pages, self._page_bytes, self._next_serial())

    def _lock(self, node: Node) -> None:
        for above in node.path():
            above.last_used = self._ticks
            above.locks += 1
            if above.locks == 1:
                self.evictable -= len(above.pages)
                self.locked += len(above.pages)
                self._line.leave(above)
        node.root().locks += 1

    def _queue(self, node: Node) -> None:
        if not node.children and node.locks == 0:
            self._line.join(node)

    def _cut_off(self, leaf: Node, count: int) -> None:
        first_page = leaf.tokens[: self._page_bytes]
        pages, ids = leaf.trim(count, self._page_bytes)
        ids.reverse()
        self._pool.give_back(pages)
        self._emit(Removed(ids))
        self.evictable -= count
        self.evicted_pages_total += count
        self.version += 1
        if leaf.pages:
            return
        assert leaf.parent is not None
        self._line.leave(leaf)
        del leaf.parent.children[first_page]
        if leaf.parent.parent is None:
            self._drop_if_bare(leaf.parent)
        else:
            self._queue(leaf.parent)

    def _drop_if_bare(self, root: Node) -> None:
        # Salts are chosen by clients, so an empty root must not stay.
        if root.locks == 0 and not root.children:
            assert root.namespace is not None
            del self._roots[root.namespace]

    def _nodes(self) -> Iterator[Node]:
        """Every node but the roots."""
        stack = [child for root in self._roots.values() for child in root.children.values()]
        while stack:
            node = stack.pop()
            stack += node.children.values()
            yield node

    def _next_serial(self) -> int:
        self._serials += 1
        return self._serials
