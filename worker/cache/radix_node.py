"""One edge of the radix tree: a run of whole pages, their tokens, and where it hangs."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from radixgate.proto.blocks import chain

# Bytes of one token id: keys are compared as bytes, at the speed of memcmp.
TOKEN_BYTES = 4


@dataclass(frozen=True, slots=True)
class Namespace:
    """Whose prefixes these are; trees of two namespaces share nothing."""

    adapter: str | None = None  # None: the base model
    salt: str | None = None  # None: the namespace everyone shares


class Node:
    """Pages `pages` hold the KV of `tokens`, which follow on what the ancestors hold.

    Whoever holds a node means the prefix that ends where the node ends. A split therefore makes a
    new node for the upper part, and the old object keeps its end.
    """

    __slots__ = (
        "block_ids",
        "children",
        "created",
        "last_used",
        "locks",
        "namespace",
        "pages",
        "parent",
        "priority",
        "rank",
        "serial",
        "tokens",
        "uses",
    )

    def __init__(
        self,
        parent: "Node | None",
        tokens: bytes,
        pages: list[int],
        block_ids: "array[int]",
        serial: int,
    ) -> None:
        self.parent = parent  # None: this is a root, which holds no pages
        self.tokens = tokens  # little-endian uint32 each, whole pages
        self.pages = pages
        self.block_ids = block_ids  # one a page; of a root: its own id, which is no block's
        self.serial = serial  # unique, breaks ties between equal ranks
        self.children: dict[bytes, Node] = {}  # by the tokens of the child's first page
        self.locks = 0  # requests that use this node or one below it
        # What eviction goes by. An ancestor has no less of any of the last three than its children.
        self.created = 0  # ticks of the cache
        self.last_used = 0  # ticks of the cache
        self.uses = 1  # requests: the one that computed it, and those that found it cached
        self.priority = 0  # the highest of the requests that used it
        self.rank: tuple[int, ...] | None = None  # its place in line for eviction; None: not in it
        self.namespace: Namespace | None = None  # of a root only

    @property
    def last_block_id(self) -> int:
        """The parent of a block that follows on this node."""
        return self.block_ids[-1]

    def path(self) -> Iterator["Node"]:
        """This node and its ancestors, without the root."""
        node = self
        while node.parent is not None:
            yield node
            node = node.parent

    def root(self) -> "Node":
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def used_by(self, priority: int, *, another: bool) -> None:
        """A request of that priority uses this node and those above it; `another`: it is one that
        was not counted yet. Only while they are locked, as their rank may change. O(depth)."""
        for above in self.path():
            above.priority = max(above.priority, priority)
            above.uses += another

    def common_pages(self, tokens: bytes, start: int, page_bytes: int) -> int:
        """How many whole pages of this node equal `tokens[start:]`. O(node) bytes compared."""
        if tokens.startswith(self.tokens, start):
            return len(self.pages)
        low, high = 0, min(len(self.tokens), len(tokens) - start) // page_bytes
        while low < high:
            middle = (low + high + 1) // 2
            if tokens.startswith(
                self.tokens[low * page_bytes : middle * page_bytes], start + low * page_bytes
            ):
                low = middle
            else:
                high = middle - 1
        return low

    def split(self, pages: int, page_bytes: int, serial: int) -> "Node":
        """Cut off the first `pages` pages as a new node above this one, and return it."""
        assert self.parent is not None
        assert 0 < pages < len(self.pages)
        cut = pages * page_bytes
        upper = Node(
            self.parent, self.tokens[:cut], self.pages[:pages], self.block_ids[:pages], serial
        )
        upper.locks = self.locks
        upper.created, upper.last_used = self.created, self.last_used
        upper.uses, upper.priority = self.uses, self.priority
        upper.children = {self.tokens[cut : cut + page_bytes]: self}
        self.parent.children[self.tokens[:page_bytes]] = upper
        self.parent = upper
        self.tokens = self.tokens[cut:]
        self.pages = self.pages[pages:]
        self.block_ids = self.block_ids[pages:]
        return upper

    def trim(self, pages: int, page_bytes: int) -> tuple[list[int], "array[int]"]:
        """Drop the last `pages` pages; returns them and their block ids."""
        keep = len(self.pages) - pages
        dropped = self.pages[keep:], self.block_ids[keep:]
        self.tokens = self.tokens[: keep * page_bytes]
        self.pages = self.pages[:keep]
        self.block_ids = self.block_ids[:keep]
        return dropped

    def check(self, page_size: int) -> None:
        """What must hold for any node but a root, seen from here."""
        assert self.parent is not None
        assert self.pages, "a node without pages"
        assert len(self.tokens) == len(self.pages) * page_size * TOKEN_BYTES
        assert len(self.block_ids) == len(self.pages)
        assert self.parent.children[self.tokens[: page_size * TOKEN_BYTES]] is self
        assert self.parent.locks >= self.locks, "a parent is less locked than its child"
        if self.parent.parent is not None:
            assert self.parent.priority >= self.priority, (
                "a parent is less important than its child"
            )
            assert self.parent.uses >= self.uses, "a parent is used less often than its child"
            assert self.parent.last_used >= self.last_used, "a parent was used before its child"
        ids = chain(self.parent.last_block_id, array("I", self.tokens), page_size)
        assert ids == self.block_ids, "a block id is not what its tokens say"
