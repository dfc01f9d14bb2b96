"""W01: a prompt that is wholly cached still has a token to compute."""

import pytest

from history_model import expected_greedy
from small_engine import SmallEngine


@pytest.mark.parametrize(
    ("last", "cached"),
    [
        pytest.param(13, 0, id="shorter-than-a-page"),
        pytest.param(14, 0, id="one-page"),
        pytest.param(15, 4, id="one-page-and-one"),
        pytest.param(18, 4, id="two-pages"),
        pytest.param(19, 8, id="two-pages-and-one"),
    ],
)
def test_w01_the_second_call_never_matches_the_last_token(last: int, cached: int) -> None:
    engine = SmallEngine()
    prompt = list(range(11, last + 1))
    first = engine.answer(prompt, max_tokens=3)
    second = engine.answer(prompt, max_tokens=3)
    assert first.cached(1) == 0
    assert second.cached(1) == cached
    assert first.ids(1) == second.ids(1) == expected_greedy(prompt, 3)
    engine.check_idle()


def test_w01_generated_tokens_are_reused_but_for_the_last() -> None:
    engine = SmallEngine()
    prompt = [1, 2, 3, 4, 5, 6]
    output = engine.answer(prompt, max_tokens=5).ids(1)
    chained = engine.answer([*prompt, *output, 7, 8, 9], max_tokens=3)
    # 6 + 4 tokens have KV, two whole pages.
    assert chained.cached(1) == 8
    assert chained.ids(1) == expected_greedy([*prompt, *output, 7, 8, 9], 3)
