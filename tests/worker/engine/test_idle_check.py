"""A page that is lost is noticed when the worker is idle, counted, and found again."""

import logging

import pytest

from history_model import expected_greedy
from small_engine import Ear, SmallEngine

PROMPT = list(range(20))


@pytest.mark.filterwarnings("error")
def test_a_private_page_that_was_lost_comes_back_and_the_cache_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = SmallEngine()
    ear = Ear()
    engine.submit(ear, 1, PROMPT, max_tokens=3)
    engine.step()
    engine.core._memory._pool.take(2)
    with caplog.at_level(logging.ERROR):
        engine.run()
    assert "pages were missing" in caplog.text
    stats = engine.core.stats()
    assert stats.leaks_total == 1
    assert stats.pages.free + stats.pages.evictable == stats.pages.total
    engine.core.check()
    again = engine.answer(PROMPT, max_tokens=3)
    assert again.cached(1) == 16
    assert again.ids(1) == expected_greedy(PROMPT, 3)
    assert engine.core.stats().leaks_total == 1


def test_a_lock_that_nobody_holds_drops_the_cache_and_tells_the_watchers() -> None:
    engine = SmallEngine()
    engine.answer(PROMPT, max_tokens=1)
    cache = engine.core._memory._cache
    (root,) = cache._roots.values()
    (node,) = root.children.values()
    cache._lock(node)
    assert engine.events
    engine.answer([1], max_tokens=1)
    assert not engine.events, "the watchers hear that everything was dropped"
    stats = engine.core.stats()
    assert stats.leaks_total == 1
    assert stats.pages.free == stats.pages.total
    engine.core.check()
    assert engine.answer(PROMPT, max_tokens=3).ids(1) == expected_greedy(PROMPT, 3)


def test_an_idle_worker_that_is_sound_counts_nothing() -> None:
    engine = SmallEngine()
    for _ in range(3):
        engine.answer(PROMPT, max_tokens=2)
    assert engine.core.stats().leaks_total == 0
