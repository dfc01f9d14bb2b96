"""Overlap: a step is planned while the one before it is computed, and its answers are the same."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from asking import PLENTY, Asked, submit
from history_model import HistoryModel, NoAttention, expected_greedy
from loop_ear import LoopEar
from radixgate.clock import SystemClock
from radixgate.worker.engine.engine import Engine
from radixgate.worker.steps.model_runner import ModelRunner
from small_engine import Ear, SmallEngine

PROMPT = [place % 60 for place in range(40)]


def overlapped(*, pages: int = 64, chunk: int = 8) -> SmallEngine:
    return SmallEngine(
        pages=pages,
        chunked_prefill_size=chunk,
        disable_overlap_schedule=False,
        debug_checks=True,
    )


def test_a_pass_is_begun_before_the_one_before_it_is_heard_of() -> None:
    engine, ear = overlapped(), Ear()
    engine.submit(ear, 1, [1, 2, 3], max_tokens=3)
    heard = []
    while engine.step():
        heard.append((engine.model.passes, len(ear.ids(1))))
    # (passes begun, tokens out): the third token is the last, so no fourth pass is begun.
    assert heard == [(1, 0), (2, 1), (3, 2), (3, 3)]
    assert ear.ids(1) == expected_greedy([1, 2, 3], 3)
    engine.check_idle()


def test_a_stop_found_a_step_late_throws_one_row_away_and_nothing_else() -> None:
    right = expected_greedy([1, 2, 3], 9)
    stop = right[4]
    tokens = right.index(stop) + 1
    engine, ear = overlapped(), Ear()
    engine.submit(ear, 1, [1, 2, 3], max_tokens=9, stop_token_ids=[stop])
    engine.run()
    assert (ear.ids(1), ear.finish(1)) == (right[:tokens], "STOP")
    assert engine.model.rows == 3 + tokens  # one more than without overlap
    assert ear.counts(1).completion == tokens
    engine.check_idle()


def test_what_a_thrown_away_row_was_paid_with_is_there_for_other_choices() -> None:
    """Two choices that share 12 tokens of credit; one stops early, with a row in flight."""
    asked = Asked(temperature=1.0, seed=3, n=2, max_tokens=8)
    plain = SmallEngine().answer([1, 2, 3], **asked)
    firsts, seconds = plain.ids(1, 0), plain.ids(1, 1)
    stop = next(token for token in firsts if token not in seconds)
    short = firsts.index(stop) + 1
    engine = overlapped()
    ear = Ear()
    asked |= Asked(stop_token_ids=[stop], credit=short + 8)
    engine.submit(ear, 1, [1, 2, 3], **asked)
    engine.run()
    assert (ear.finish(1, 0), ear.ids(1, 0)) == ("STOP", firsts[:short])
    assert (ear.finish(1, 1), ear.ids(1, 1)) == ("LENGTH", seconds)
    engine.check_idle()


def test_a_prefix_in_flight_is_waited_for_and_not_computed_twice() -> None:
    engine, ear = overlapped(chunk=64), Ear()
    engine.submit(ear, 1, PROMPT, max_tokens=1)
    engine.step()
    engine.submit(ear, 2, PROMPT, max_tokens=1)
    engine.run()
    assert engine.model.rows == 40 + 4  # the last page of the second
    assert ear.cached(2) == 36
    assert ear.ids(1) == ear.ids(2) == expected_greedy(PROMPT, 1)


def test_a_failed_pass_ends_those_in_it_and_who_was_only_planned_goes_on() -> None:
    engine, ear = overlapped(), Ear()
    engine.submit(ear, 1, [1], max_tokens=9)
    engine.run_until(lambda: len(ear.ids(1)) == 2)
    engine.model.fail_next = True
    engine.step()  # begins the pass that fails
    engine.submit(ear, 2, [2], max_tokens=4)
    engine.step()  # plans with both, and hears of the failure
    assert (ear.finish(1), ear.of(1)[-1].finish.status) == ("ABORT", 500)
    engine.run()
    assert ear.ids(2) == expected_greedy([2], 4)
    assert engine.ended == {1: 1, 2: 1}
    engine.check_idle()


@pytest.mark.parametrize("when", range(8))
def test_an_abort_with_a_pass_in_flight_gives_every_page_back_once(when: int) -> None:
    engine, ear = overlapped(pages=16), Ear()
    engine.submit(ear, 1, PROMPT[:17], max_tokens=20)
    engine.submit(ear, 2, PROMPT[:15], max_tokens=20)
    for _ in range(when):
        engine.step()
    engine.core.abort(ear, 1, "enough")
    engine.core.check()
    engine.run()
    assert ear.finish(1) == "ABORT"
    assert ear.ids(2) == expected_greedy(PROMPT[:15], 20)
    engine.check_idle()


def test_where_pages_run_out_with_passes_in_flight_outputs_are_the_same() -> None:
    engine, ear = overlapped(pages=12), Ear()
    for handle in range(4):
        engine.submit(ear, handle, [handle, 1, 2], max_tokens=24)
    engine.run()
    assert engine.core.stats().retractions_total > 0
    for handle in range(4):
        assert ear.ids(handle) == expected_greedy([handle, 1, 2], 24)
    engine.check_idle()


def test_penalties_count_the_token_that_was_drawn_meanwhile() -> None:
    asked = Asked(frequency_penalty=1.5, repetition_penalty=1.3, max_tokens=20)
    plain = SmallEngine().answer([1, 2, 3], **asked)
    late = overlapped().answer([1, 2, 3], **asked)
    assert late.ids(1) == plain.ids(1)


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    clock = SystemClock()
    model = HistoryModel(4096)
    runner = ModelRunner(model, NoAttention(), 4, copy_pages=model.copier(4))
    line = ThreadPoolExecutor(1)
    small = SmallEngine(
        pages=1024,
        clock=clock,
        runner=runner,
        line=line,
        disable_overlap_schedule=False,
        debug_checks=True,
    )
    engine = Engine(small.core, clock, threads=1, line=line)
    engine.start()
    yield engine
    engine.stop()
    small.core.check()
    assert small.core.stats().leaks_total == 0


async def test_with_a_thread_that_computes_answers_are_the_same(engine: Engine) -> None:
    ear = LoopEar()
    prompts = {handle: [handle] * (handle % 7 + 1) for handle in range(20)}
    for handle, prompt in prompts.items():
        engine.submit(ear, submit(handle, prompt, max_tokens=12, n=1 + handle % 2))
    await ear.until_ended(*prompts)
    for handle, prompt in prompts.items():
        assert ear.ids(handle) == expected_greedy(prompt, 12)


async def test_a_stop_with_a_pass_in_flight_ends_every_request_once(engine: Engine) -> None:
    ear = LoopEar()
    engine.submit(ear, submit(1, [1], max_tokens=3_000, credit=PLENTY))
    await ear.until_tokens(1, 5)
    engine.stop()
    await ear.until_ended(1)
    assert ear.finish(1) == "ABORT"
    assert ear.ids(1) == expected_greedy([1], len(ear.ids(1)))
