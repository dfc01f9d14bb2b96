"""The radix cache and its events against sets of prefixes, step by step."""

from array import array
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from radixgate.proto.blocks import chain, root_id
from radixgate.proto.kv_events import KvEvent
from radixgate.worker.cache.eviction import EVICTION_ORDERS
from radixgate.worker.cache.pages import PagePool
from radixgate.worker.cache.radix_cache import RadixCache
from radixgate.worker.cache.radix_node import Namespace, Node
from stored_blocks import StoredBlocks

PAGE = 2
TOTAL = 24
# Few tokens and few namespaces, so that prefixes meet, split and come back.
TOKENS = st.lists(st.integers(1, 2), min_size=1, max_size=13)
NAMESPACES = st.sampled_from([Namespace(), Namespace(salt="a"), Namespace(adapter="a")])


@dataclass(eq=False)
class Holder:
    """A request as the cache sees it: its tokens, its pages, the node it has locked."""

    namespace: Namespace
    tokens: list[int]
    pages: list[int]
    node: Node


class CacheMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.events: list[KvEvent] = []
        self.pool = PagePool(TOTAL)
        self.cache = self.empty("lru")
        self.reader = StoredBlocks()
        self.stored: set[tuple[Namespace, tuple[int, ...]]] = set()  # every cached prefix
        self.content: dict[
            int, tuple[Namespace, tuple[int, ...]]
        ] = {}  # what was written to a page
        self.holders: list[Holder] = []

    def empty(self, policy: str) -> RadixCache:
        return RadixCache(
            self.pool,
            page_size=PAGE,
            weights_id="w",
            emit=self.events.append,
            order=EVICTION_ORDERS[policy],
        )

    @initialize(policy=st.sampled_from(sorted(EVICTION_ORDERS)))
    def start(self, policy: str) -> None:
        self.cache = self.empty(policy)

    @rule(namespace=NAMESPACES, tokens=TOKENS, priority=st.integers(-1, 1), another=st.booleans())
    def match(self, namespace: Namespace, tokens: list[int], priority: int, another: bool) -> None:
        expected = self._depth(namespace, tokens[:-1])
        packed = array("I", tokens).tobytes()
        assert self.cache.cached_tokens(namespace, packed) == expected * PAGE
        prefix = self.cache.match(namespace, packed)
        assert len(prefix.pages) == expected
        for place, page in enumerate(prefix.pages):
            assert self.content[page] == (namespace, tuple(tokens[: (place + 1) * PAGE]))
        prefix.node.used_by(priority, another=another)
        held = tokens[: expected * PAGE]
        self.holders.append(Holder(namespace, held, prefix.pages, prefix.node))

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), more=TOKENS, priority=st.integers(-1, 1))
    def insert(self, data: st.DataObject, more: list[int], priority: int) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        pages_wanted = len(more) // PAGE
        if pages_wanted > self.pool.free + self.cache.evictable:
            return
        self._make_room(pages_wanted)
        own = self.pool.take(pages_wanted)
        more = more[: pages_wanted * PAGE]
        tokens = holder.tokens + more
        for place, page in enumerate(own):
            end = len(holder.tokens) + (place + 1) * PAGE
            self.content[page] = (holder.namespace, tuple(tokens[:end]))
        inserted = self.cache.insert(
            holder.node, array("I", more).tobytes(), own, priority=priority
        )
        holder.node, holder.tokens = inserted.node, tokens
        holder.pages = holder.pages + inserted.pages
        self.pool.give_back(inserted.duplicates)
        for end in range(PAGE, len(tokens) + 1, PAGE):
            self.stored.add((holder.namespace, tuple(tokens[:end])))

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def unlock(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        self.holders.remove(holder)
        self.cache.unlock(holder.node)

    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(0, self.cache.evictable))
        before = self.pool.free
        self.cache.evict(count)
        assert self.pool.free == before + count
        self._forget_the_evicted()

    @precondition(lambda self: not self.holders)
    @rule()
    def clear(self) -> None:
        self.cache.clear()
        assert self.pool.free == TOTAL
        self.stored.clear()
        self.reader = StoredBlocks()
        self.events.clear()

    @invariant()
    def agrees(self) -> None:
        self.cache.check()
        self.pool.check()
        assert self.pool.free + self.cache.evictable + self.cache.locked == TOTAL
        self.reader.apply(self.events)
        self.events.clear()
        assert self.reader.ids == {self._block_id(*prefix) for prefix in self.stored}
        for holder in self.holders:
            for place, page in enumerate(holder.pages):
                end = (place + 1) * PAGE
                assert self.content[page] == (holder.namespace, tuple(holder.tokens[:end]))
        locked = {
            (holder.namespace, tuple(holder.tokens[:end]))
            for holder in self.holders
            for end in range(PAGE, len(holder.tokens) + 1, PAGE)
        }
        assert self.cache.locked == len(locked)

    def _depth(self, namespace: Namespace, tokens: list[int]) -> int:
        pages = 0
        while (pages + 1) * PAGE <= len(tokens):
            if (namespace, tuple(tokens[: (pages + 1) * PAGE])) not in self.stored:
                break
            pages += 1
        return pages

    def _block_id(self, namespace: Namespace, tokens: tuple[int, ...]) -> int:
        root = root_id("w", namespace.adapter, namespace.salt)
        return chain(root, array("I", tokens), PAGE)[-1]

    def _make_room(self, pages: int) -> None:
        self.cache.evict(max(0, pages - self.pool.free))
        self._forget_the_evicted()

    def _forget_the_evicted(self) -> None:
        self.reader.apply(self.events)
        self.events.clear()
        self.stored = {
            prefix for prefix in self.stored if self._block_id(*prefix) in self.reader.ids
        }


TestRadixCache = pytest.mark.slow(CacheMachine.TestCase)
CacheMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def small_cache() -> tuple[PagePool, RadixCache]:
    pool = PagePool(TOTAL)
    return pool, RadixCache(pool, page_size=PAGE, weights_id="w", emit=lambda event: None)


def keep(pool: PagePool, cache: RadixCache, tokens: list[int]) -> None:
    packed = array("I", tokens).tobytes()
    prefix = cache.match(Namespace(), packed + b"\0\0\0\0")
    rest = tokens[len(prefix.pages) * PAGE :]
    own = pool.take(len(rest) // PAGE)
    inserted = cache.insert(prefix.node, array("I", rest).tobytes(), own)
    pool.give_back(inserted.duplicates)
    cache.unlock(inserted.node)


def found(cache: RadixCache, tokens: list[int]) -> int:
    return cache.cached_tokens(Namespace(), array("I", [*tokens, 0]).tobytes())


def test_the_least_recently_used_leaf_goes_first_and_from_its_end() -> None:
    pool, cache = small_cache()
    keep(pool, cache, [1, 1, 2, 2, 3, 3])
    keep(pool, cache, [1, 1, 5, 5])
    cache.evict(1)
    assert found(cache, [1, 1, 2, 2, 3, 3]) == 4
    keep(pool, cache, [1, 1, 2, 2])
    cache.evict(1)
    assert found(cache, [1, 1, 5, 5]) == 2
    assert found(cache, [1, 1, 2, 2]) == 4


def test_a_namespace_without_prefixes_leaves_nothing_behind() -> None:
    _, cache = small_cache()
    for user in range(100):
        cache.unlock(cache.match(Namespace(salt=str(user)), b"\0" * 40).node)
    assert cache.namespaces == 0


def test_counters_are_in_pages_however_long_the_keys() -> None:
    pool, cache = small_cache()
    keep(pool, cache, [1, 1, 2, 2])
    keep(pool, cache, [1, 1, 3, 3])
    assert cache.evictable == 3
    assert pool.free == TOTAL - 3
