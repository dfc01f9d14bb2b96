"""Which pages each sequence has: between the page pool, the prefix cache and the page tables."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from radixgate.proto.blocks import chain
from radixgate.worker.cache.pages import PagePool
from radixgate.worker.cache.radix_cache import RadixCache
from radixgate.worker.cache.radix_node import Namespace
from radixgate.worker.requests.sequence import Found, PageCopy, Phase, TokenSequence

# Tokens, as in SGLang: what somebody else is about to compute is waited for from here on.
_WORTH_WAITING_FOR = 32
Prefix = tuple[Namespace, bytes]  # the tokens as bytes


@dataclass(frozen=True, slots=True)
class PageCounts:
    """At any time between two steps the first three sum up to `total`."""

    free: int
    evictable: int  # cached, in use by nobody
    locked: int  # in use, shared or private
    total: int


class KvMemory:
    """Gives pages to sequences and takes them back.

    A page table begins with pages of the tree (`shared` of them, locked through `node`); the rest
    is private to the sequence until `store` hangs it into the tree.
    """

    def __init__(
        self, pool: PagePool, cache: RadixCache, page_size: int, *, copies_pages: bool = False
    ) -> None:
        """`copies_pages`: whoever runs the model can carry out a PageCopy."""
        self.page_size = page_size
        self._copies_pages = copies_pages
        self._pool = pool
        self._cache = cache

    @property
    def available(self) -> int:
        """Pages that can be had, if need be by eviction."""
        return self._pool.free + self._cache.evictable

    @property
    def evicted_tokens_total(self) -> int:
        return self._cache.evicted_pages_total * self.page_size

    def counts(self) -> PageCounts:
        free, evictable = self._pool.free, self._cache.evictable
        return PageCounts(free, evictable, self._pool.total - free - evictable, self._pool.total)

    @property
    def cache_version(self) -> int:
        """While it stays, every lookup finds what it found before."""
        return self._cache.version

    def found(self, sequence: TokenSequence) -> Found:
        """What of a sequence without pages is cached. O(1) unless the cache has changed."""
        version = self._cache.version
        if sequence.found is None or sequence.found.version != version:
            tokens = _findable(sequence)
            cached, _, node = self._cache.look_up(sequence.request.namespace, tokens)
            sequence.found = Found(version, cached, node)
        return sequence.found

    def uncached_tokens(self, sequence: TokenSequence) -> int:
        """How many of its tokens an admission now would leave to be computed."""
        return len(sequence.ids) - self.found(sequence).tokens

    def next_prefix(self, sequence: TokenSequence) -> Prefix | None:
        """The tokens that it shares with whoever would compute its next 32 tokens, or its next
        page if that is more; None: there are not so many, or it computes them in any case. O(their
        number)."""
        if sequence.scores:
            return None
        if sequence.node is None:
            cached = self.found(sequence).tokens
        else:
            cached = sequence.shared * self.page_size
        end = cached + max(_WORTH_WAITING_FOR, self.page_size)
        if len(sequence.ids) <= end:
            return None
        return sequence.request.namespace, sequence.ids[:end].tobytes()

    def missing_blocks(self, sequence: TokenSequence) -> tuple[int, "array[int]"]:
        """The prompt's blocks that are not cached, and the parent of the first of them."""
        request = sequence.request
        prompt = sequence.ids[: request.prompt_tokens]
        cached, parent, _ = self._cache.look_up(request.namespace, prompt.tobytes())
        return parent, chain(parent, prompt[cached:], self.page_size)

    def admit(self, sequence: TokenSequence, spare: int) -> bool:
        """Give pages for all tokens there are, cached ones first, if `spare` more remain.

        All at once: a prefill that had to stop half-way for want of a page could block others
        that wait for its pages. False, and nothing taken, if there are not enough.
        """
        prefix = self._cache.match(sequence.request.namespace, _findable(sequence))
        # Counted after the match has locked its pages: those cannot be evicted for the rest.
        missing = self._pages_for(len(sequence.ids)) - len(prefix.pages)
        if missing + spare > self.available:
            self._cache.unlock(prefix.node)
            return False
        request = sequence.request
        first_visit = sequence.retractions == 0 and sequence is request.sequences[0]
        prefix.node.used_by(request.priority, another=first_visit)
        sequence.node = prefix.node
        sequence.shared = len(prefix.pages)
        sequence.pages = prefix.pages + self._take(missing)
        sequence.computed = sequence.shared * self.page_size
        self._copy_from_sibling(sequence)
        sequence.planned = sequence.computed
        return True

    def _copy_from_sibling(self, sequence: TokenSequence) -> None:
        """A further choice takes over the prompt's last page, all but the prompt's last token.

        Only if its chunk is in the very next pass: later the sibling may have lost the page.
        """
        request = sequence.request
        tokens = len(sequence.ids) - 1 - sequence.computed
        if not self._copies_pages or sequence.retractions or not 0 < tokens < self.page_size:
            return
        if request.credit <= 0 and not request.scoring:
            return
        for sibling in request.sequences:
            running = sibling is not sequence and sibling.phase is Phase.RUNNING
            if running and sibling.computed >= request.prompt_tokens:
                place = sequence.shared
                sequence.copy = PageCopy(sibling.pages[place], sequence.pages[place], tokens)
                sequence.computed += tokens
                return

    def cover(self, sequence: TokenSequence) -> bool:
        """Room for the KV of the next token to be planned; False if no page can be had for it."""
        if sequence.planned < len(sequence.pages) * self.page_size:
            return True
        if self.available == 0:
            return False
        sequence.pages += self._take(1)
        return True

    def store(self, sequence: TokenSequence) -> None:
        """Hang the whole pages computed so far into the tree, where others find them."""
        assert sequence.node is not None
        start, end = sequence.shared, sequence.computed // self.page_size
        if end <= start:
            return
        tokens = sequence.ids[start * self.page_size : end * self.page_size].tobytes()
        inserted = self._cache.insert(
            sequence.node, tokens, sequence.pages[start:end], priority=sequence.request.priority
        )
        if inserted.node is sequence.node:
            return  # nothing is kept
        # The page table points to the tree's pages before its own duplicates go back (W02).
        sequence.pages[start:end] = inserted.pages
        sequence.shared, sequence.node = end, inserted.node
        self._pool.give_back(inserted.duplicates)

    def release(self, sequence: TokenSequence) -> None:
        """Keep what is computed for others, give back the rest."""
        if sequence.node is None:
            return
        self.store(sequence)
        self._pool.give_back(sequence.pages[sequence.shared :])
        self._cache.unlock(sequence.node)
        sequence.node, sequence.pages, sequence.found = None, [], None
        sequence.shared = sequence.computed = sequence.planned = 0
        sequence.prefill_end = sequence.drawing = 0

    def flush(self) -> None:
        """Drop every cached prefix; only while no sequence has pages."""
        self._cache.clear()

    def idle_leak(self) -> str | None:
        """What is wrong with the page counts while nobody runs; None if nothing. O(1)."""
        counts = self.counts()
        if counts.locked == 0 and self._cache.locked == 0:
            return None
        return (
            f"idle, but {counts.free} free + {counts.evictable} evictable of {counts.total} pages,"
            f" {self._cache.locked} locked"
        )

    def repair(self) -> bool:
        """While nobody runs: make every page free or cached again. O(pages).

        True: the cached prefixes are kept. False: the tree itself was wrong, and was dropped.
        """
        try:
            assert self._cache.locked == 0, "nobody runs, and a prefix is locked"
            self._cache.check()
        except AssertionError:
            self._cache.forget()
            self._pool.rebuild(())
            return False
        self._pool.rebuild(self._cache.pages_held())
        return True

    def check(self, running: Iterable[TokenSequence]) -> None:
        """Each page is free, in the tree, or private to one sequence: exactly one of the three."""
        self._pool.check()
        self._cache.check()
        owned = self._cache.pages_held()
        in_tree = set(owned)
        for sequence in running:
            sequence.check(self.page_size)
            assert in_tree.issuperset(sequence.pages[: sequence.shared]), "shares a foreign page"
            owned += sequence.pages[sequence.shared :]
        assert len(owned) == len(set(owned)), "a page has two owners"
        assert len(owned) + self._pool.free == self._pool.total, "a page is lost"

    def _pages_for(self, tokens: int) -> int:
        return -(-tokens // self.page_size)

    def _take(self, count: int) -> list[int]:
        if count > self._pool.free:
            self._cache.evict(count - self._pool.free)
        return self._pool.take(count)


def _findable(sequence: TokenSequence) -> bytes:
    """The tokens to look for in the cache, which never finds the last of them.

    What scores the prompt's next token is computed, cached or not: the row of the one before it.
    """
    if sequence.scores:
        return sequence.ids[: max(1, sequence.request.unscored)].tobytes()
    return sequence.ids.tobytes()
