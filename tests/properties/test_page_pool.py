"""The page pool against a set of free pages."""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from radixgate.worker.cache.pages import PagePool

TOTAL = 12


class PoolMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(TOTAL)
        self.taken: list[int] = []

    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(0, self.pool.free))
        pages = self.pool.take(count)
        assert len(pages) == count
        assert not set(pages) & set(self.taken)
        self.taken += pages

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        pages = data.draw(st.lists(st.sampled_from(self.taken), unique=True))
        self.pool.give_back(pages)
        self.taken = [page for page in self.taken if page not in pages]

    @invariant()
    def agrees(self) -> None:
        self.pool.check()
        assert self.pool.free == TOTAL - len(self.taken)
        assert all(0 <= page < TOTAL for page in self.taken)


TestPagePool = pytest.mark.slow(PoolMachine.TestCase)
PoolMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


def test_a_page_freed_twice_is_caught_at_once() -> None:
    pool = PagePool(2)
    pages = pool.take(1)
    pool.give_back(pages)
    with pytest.raises(AssertionError, match="freed twice"):
        pool.give_back(pages)
