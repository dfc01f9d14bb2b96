"""The pool of KV pages: which page ids are free."""

from collections.abc import Collection, Sequence


class PagePool:
    """Hands out page ids 0 to `total - 1`.

    Taking or giving back n pages costs O(n) and nothing besides: the free list is a stack, so a
    page given back last is taken first, while it is still warm in the processor's cache.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = list(range(total - 1, -1, -1))
        # A page freed twice would later be given to two requests; one byte a page rules it out.
        self._is_free = bytearray(b"\x01") * total

    @property
    def free(self) -> int:
        """How many pages can be taken now."""
        return len(self._free)

    def take(self, count: int) -> list[int]:
        """`count` pages, the caller's until given back. The caller has checked that they exist."""
        assert 0 <= count <= len(self._free), f"{count} pages wanted, {len(self._free)} free"
        keep = len(self._free) - count
        taken = self._free[keep:]
        del self._free[keep:]
        for page in taken:
            self._is_free[page] = 0
        return taken

    def give_back(self, pages: Sequence[int]) -> None:
        """Make `pages` free again."""
        for page in pages:
            assert not self._is_free[page], f"page {page} is freed twice"
            self._is_free[page] = 1
        self._free.extend(pages)

    def rebuild(self, held: Collection[int]) -> None:
        """Whatever was taken or given back: all but `held` are free. O(total)."""
        self._is_free = bytearray(b"\x01") * self.total
        for page in held:
            self._is_free[page] = 0
        self._free = [page for page in range(self.total - 1, -1, -1) if self._is_free[page]]

    def check(self) -> None:
        """Every free page stands in the list once, and no other does. O(total)."""
        assert len(set(self._free)) == len(self._free), "a page stands twice in the free list"
        marked = {page for page in range(self.total) if self._is_free[page]}
        assert marked == set(self._free), "the marks and the free list differ"
