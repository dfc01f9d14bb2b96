"""W02: two requests that compute the same prefix side by side end up on the same pages."""

import random

import pytest

from history_model import expected_greedy
from small_engine import Ear, SmallEngine


@pytest.mark.slow
def test_w02_twins_amid_churn_answer_as_if_alone() -> None:
    rng = random.Random(2)
    engine = SmallEngine(pages=48, chunked_prefill_size=32)
    for _ in range(20):
        prompt = [rng.randrange(64) for _ in range(21)]
        ear = Ear()
        engine.submit(ear, 1, prompt, max_tokens=40)
        engine.submit(ear, 2, prompt, max_tokens=40)
        others = {}
        for handle in range(3, 15):
            others[handle] = [rng.randrange(64) for _ in range(rng.randrange(1, 9))]
            engine.submit(ear, handle, others[handle], max_tokens=rng.randrange(1, 9))
            engine.step()
            engine.core.check()
        engine.run()
        assert ear.cached(1) == ear.cached(2) == 0
        assert ear.ids(1) == ear.ids(2) == expected_greedy(prompt, 40)
        for handle, other in others.items():
            assert ear.ids(handle) == expected_greedy(other, len(ear.ids(handle)))
        engine.check_idle()
    assert engine.core.flush()[0]
    pages = engine.core.stats().pages
    assert pages.free == pages.total


def test_w02_twins_hold_one_copy_of_their_prompt() -> None:
    engine = SmallEngine(chunked_prefill_size=64)
    ear, prompt = Ear(), list(range(21))
    engine.submit(ear, 1, prompt, max_tokens=4)
    engine.submit(ear, 2, prompt, max_tokens=4)
    engine.step()
    # Five whole pages together, and one page each for the rest.
    assert engine.core.stats().pages.locked == 5 + 2
    engine.core.check()


@pytest.mark.parametrize(
    ("prompt", "kept"),
    [
        pytest.param([1, 2, 3], 0, id="shorter-than-a-page"),
        pytest.param([5, 6, 7, 8, 9], 0, id="first-page-cached-already"),
    ],
)
def test_w02_what_adds_no_whole_page_changes_nothing(prompt: list[int], kept: int) -> None:
    engine = SmallEngine()
    engine.answer([5, 6, 7, 8, 1, 1, 1, 1, 1], max_tokens=1)
    before = engine.core.stats().pages
    engine.answer(prompt, max_tokens=1)
    engine.check_idle()
    assert engine.core.stats().pages.evictable == before.evictable + kept
