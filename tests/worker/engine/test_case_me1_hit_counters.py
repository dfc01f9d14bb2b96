"""ME1: hits are counted once a request, not at each lookup."""

from small_engine import Ear, SmallEngine


def test_me1_retries_and_retractions_are_no_queries() -> None:
    engine = SmallEngine(pages=10, schedule_conservativeness=0.0, max_running_requests=8)
    ear = Ear()
    prompts = [[10 * place + token for token in range(10)] + [place] * 6 for place in range(6)]
    for handle, prompt in enumerate(prompts):
        engine.submit(ear, handle, prompt, max_tokens=8)
    engine.run()
    stats = engine.core.stats()
    assert (stats.prompt_tokens_total, stats.cached_tokens_total) == (96, 0)
    assert [ear.cached(handle) for handle in range(6)] == [0] * 6
    assert stats.retractions_total > 0
    assert stats.recomputed_tokens_total > 0
    engine.core.flush()
    engine.answer(prompts[0], max_tokens=8)
    assert engine.answer(prompts[0], max_tokens=8).cached(1) == 12
    after = engine.core.stats()
    assert after.prompt_tokens_total - stats.prompt_tokens_total == 32
    assert after.cached_tokens_total - stats.cached_tokens_total == 12


def test_me1_further_choices_are_no_queries() -> None:
    engine = SmallEngine()
    ear = engine.answer(list(range(16)), max_tokens=2, n=3, temperature=1.0)
    stats = engine.core.stats()
    assert (stats.prompt_tokens_total, stats.cached_tokens_total) == (16, 0)
    assert [ear.cached(1, choice) for choice in range(3)] == [0, 0, 0]
    # They share what the first has computed, and copy its last page but for the last token.
    assert stats.prefill_tokens_total == 16 + 1 + 1
