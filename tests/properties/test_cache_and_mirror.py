"""Worker cache, event log and gateway mirror driven together: equal after every step."""

from array import array
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from clocks import FakeClock
from radixgate.proto.blocks import chain, root_id
from radixgate.proto.kv_events import KvEvent, Tier
from radixgate.proto.kv_log import KvLog
from radixgate.radix_mirror.feed import KvFeed
from radixgate.radix_mirror.mirror import RadixMirror
from radixgate.worker.cache.pages import PagePool
from radixgate.worker.cache.radix_cache import RadixCache
from radixgate.worker.cache.radix_node import Namespace, Node

PAGE = 2
TOTAL = 16
PROMPTS = st.lists(st.integers(1, 2), min_size=1, max_size=11)
NAMESPACES = [Namespace(), Namespace(salt="tenant")]


@dataclass(eq=False)
class Running:
    """A request on its way through its prompt."""

    prompt: list[int]
    node: Node
    pages: list[int]
    stored: int  # pages


class Household(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.events: list[KvEvent] = []
        self.pool = PagePool(TOTAL)
        self.cache = RadixCache(self.pool, page_size=PAGE, weights_id="w", emit=self.events.append)
        self.epoch = 1
        self.log = KvLog(self.epoch, ring_updates=4)
        self.mirror = RadixMirror(FakeClock())
        self.mirror.add_worker("worker")
        self.feed = KvFeed(self.mirror, "worker")
        self.position = self.feed.restart()
        self.running: list[Running] = []
        self.seen: list[tuple[Namespace, list[int]]] = []

    @rule(namespace=st.sampled_from(NAMESPACES), prompt=PROMPTS)
    def admit(self, namespace: Namespace, prompt: list[int]) -> None:
        self.seen.append((namespace, prompt))
        prefix = self.cache.match(namespace, _packed(prompt))
        missing = -(-len(prompt) // PAGE) - len(prefix.pages)
        if missing > self.pool.free + self.cache.evictable:
            self.cache.unlock(prefix.node)
            return
        self.cache.evict(max(0, missing - self.pool.free))
        pages = prefix.pages + self.pool.take(missing)
        self.running.append(Running(prompt, prefix.node, pages, len(prefix.pages)))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), pages=st.integers(1, 3))
    def compute(self, data: st.DataObject, pages: int) -> None:
        request = data.draw(st.sampled_from(self.running))
        end = min(request.stored + pages, len(request.prompt) // PAGE)
        tokens = request.prompt[request.stored * PAGE : end * PAGE]
        own = request.pages[request.stored : end]
        inserted = self.cache.insert(request.node, _packed(tokens), own)
        request.pages[request.stored : end] = inserted.pages
        request.node, request.stored = inserted.node, end
        self.pool.give_back(inserted.duplicates)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(self.running))
        self.running.remove(request)
        self.pool.give_back(request.pages[request.stored :])
        self.cache.unlock(request.node)

    @precondition(lambda self: not self.running)
    @rule()
    def flush(self) -> None:
        self.cache.clear()
        self.events.clear()
        self.epoch += 1
        self.log.clear(self.epoch)

    @rule()
    def the_stream_breaks(self) -> None:
        self.position = self.feed.restart()

    @invariant()
    def agrees(self) -> None:
        self.cache.check()
        self.log.record(self.events)
        self.events.clear()
        for update in self.log.since(*self.position):
            assert self.feed.take(update) is None, "the mirror has lost the thread"
            self.position = (update.epoch, update.seq)
        for namespace, prompt in self.seen:
            root = root_id("w", namespace.adapter, namespace.salt)
            blocks = chain(root, array("I", prompt[:-1]), PAGE)
            cached = self.cache.cached_tokens(namespace, _packed(prompt))
            assert self.mirror.depths(blocks).get("worker", 0) * PAGE == cached
        digest = self.mirror.digests("worker").get(Tier.DEVICE)
        assert (digest.count if digest else 0) == self.cache.evictable + self.cache.locked

    def teardown(self) -> None:
        assert not self.feed.resyncs


def _packed(tokens: list[int]) -> bytes:
    return array("I", tokens).tobytes()


TestHousehold = pytest.mark.slow(Household.TestCase)
Household.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
