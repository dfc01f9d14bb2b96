"""Further choices copy the page that they cannot share, and compute one token of the prompt."""

import pytest
import torch

from history_model import expected_greedy
from radixgate.worker.forward.batch import KvPool
from radixgate.worker.requests.sequence import PageCopy
from radixgate.worker.steps.page_copies import pool_copier
from small_engine import Ear, SmallEngine


@pytest.mark.parametrize("length", [1, 2, 4, 5, 8, 9, 15])
@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("no_cache", [False, True], ids=["cache", "no-cache"])
def test_each_further_choice_computes_one_token_and_answers_right(
    length: int, page_size: int, *, no_cache: bool
) -> None:
    engine = SmallEngine(
        page_size=page_size, chunked_prefill_size=16, disable_radix_cache=no_cache, pages=200
    )
    prompt = list(range(length))
    ear = engine.answer(prompt, max_tokens=6, n=3)
    assert [ear.ids(1, choice) for choice in range(3)] == [expected_greedy(prompt, 6)] * 3
    if not no_cache:
        assert engine.core.stats().prefill_tokens_total == length + 2
    engine.check_idle()


def test_a_choice_that_comes_too_late_to_copy_computes_the_page() -> None:
    engine = SmallEngine(max_running_requests=1)
    prompt = list(range(7))
    ear = engine.answer(prompt, max_tokens=5, n=2)
    assert [ear.ids(1, choice) for choice in range(2)] == [expected_greedy(prompt, 5)] * 2
    assert engine.core.stats().prefill_tokens_total == 7 + 3


def test_without_credit_nothing_is_copied_before_it_is_used() -> None:
    engine = SmallEngine()
    ear = Ear()
    prompt = list(range(7))
    engine.submit(ear, 1, prompt, max_tokens=5, n=3, credit=1)
    engine.run()
    engine.core.check()
    engine.core.add_credit(ear, 1, 100)
    engine.run()
    assert [ear.ids(1, choice) for choice in range(3)] == [expected_greedy(prompt, 5)] * 3
    engine.check_idle()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8])
def test_a_copy_takes_all_layers_and_scales_and_nothing_beyond_its_tokens(
    dtype: torch.dtype,
) -> None:
    pool = KvPool.allocate(layers=2, slots=12, kv_heads=1, head_dim=2, dtype=dtype)
    sides = [*pool.keys, *pool.values, *pool.key_scales, *pool.value_scales]
    for side in sides:
        side.copy_(torch.arange(12).view(12, *[1] * (side.dim() - 1)).expand(side.shape))
    pool_copier(pool, 4)([PageCopy(source=0, target=2, tokens=3)])
    for side in sides:
        assert side.view(12, -1)[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 11]
