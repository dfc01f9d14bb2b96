"""W03: an abort works in every state, and leaves nothing behind.

Names of requests (one live request a rid, exact match, abort_all) are in test_engine.py.
"""

from collections.abc import Callable

import pytest

from history_model import expected_greedy
from small_engine import Ear, SmallEngine

PROMPT = list(range(32))  # four chunks of 8


def queued(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 5, [7] * 100, max_tokens=100)
    engine.step()
    engine.submit(ear, 1, PROMPT, max_tokens=20)
    engine.step()
    assert engine.core.stats().waiting == 1


def after_the_first_chunk(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 1, PROMPT, max_tokens=20)
    engine.step()
    assert not ear.of(1)


def between_prefill_and_decode(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 1, PROMPT, max_tokens=20)
    while not ear.of(1):
        engine.step()


def in_the_fifth_decode_step(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 1, PROMPT, max_tokens=20)
    while len(ear.ids(1)) < 6:
        engine.step()


def without_credit(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 1, PROMPT, max_tokens=20, credit=2)
    engine.run()
    assert len(ear.ids(1)) == 2


def retracted(engine: SmallEngine, ear: Ear) -> None:
    engine.submit(ear, 5, [7] * 60, max_tokens=60)
    engine.run_until(lambda: bool(ear.of(5)))
    engine.submit(ear, 1, PROMPT, max_tokens=60)
    engine.run_until(lambda: engine.core.stats().retractions_total > 0)
    assert ear.finish(1) is None


STATES: list[Callable[[SmallEngine, Ear], None]] = [
    queued,
    after_the_first_chunk,
    between_prefill_and_decode,
    in_the_fifth_decode_step,
    without_credit,
    retracted,
]


@pytest.mark.parametrize("state", [pytest.param(s, id=s.__name__) for s in STATES])
def test_w03_an_abort_ends_the_request_at_once_and_frees_its_pages(
    state: Callable[[SmallEngine, Ear], None],
) -> None:
    engine = SmallEngine(pages=32, chunked_prefill_size=8, schedule_conservativeness=0.0)
    ear = Ear()
    state(engine, ear)
    so_far = ear.ids(1)
    engine.core.abort(ear, 1, "the client said so")
    engine.deliver()
    assert ear.finish(1) == "ABORT"
    assert ear.of(1)[-1].finish.message == "the client said so"
    assert ear.ids(1) == so_far == expected_greedy(PROMPT, len(so_far))
    engine.core.check()
    engine.core.abort(ear, 5, "enough")
    engine.deliver()
    stats = engine.core.stats()
    assert (stats.running, stats.waiting, stats.queued_uncached_tokens) == (0, 0, 0)
    engine.check_idle()
    assert engine.ended[1] == 1


def test_w03_a_finished_request_cannot_be_aborted() -> None:
    engine = SmallEngine()
    ear = engine.answer(PROMPT, max_tokens=2)
    engine.core.abort(ear, 1, "too late")
    engine.deliver()
    assert ear.finish(1) == "LENGTH"
    assert engine.core.stats().aborted_total == 0


def test_w03_all_choices_of_an_aborted_request_end() -> None:
    engine = SmallEngine()
    ear = Ear()
    engine.submit(ear, 1, PROMPT, max_tokens=20, n=3, temperature=1.0)
    engine.step()
    engine.core.abort(ear, 1, "enough")
    engine.deliver()
    assert [ear.finish(1, choice) for choice in range(3)] == ["ABORT"] * 3
    engine.check_idle()


def test_w03_neighbours_of_an_aborted_request_go_on() -> None:
    engine = SmallEngine()
    ear = Ear()
    engine.submit(ear, 1, PROMPT, max_tokens=20)
    engine.submit(ear, 10, PROMPT, max_tokens=20)
    for _ in range(6):
        engine.step()
    engine.core.abort(ear, 1, "enough")
    engine.run()
    assert ear.finish(10) == "LENGTH"
    assert ear.ids(10) == expected_greedy(PROMPT, 20)
    engine.check_idle()


def test_w03_abort_all_ends_those_who_run_and_those_who_wait() -> None:
    engine = SmallEngine(max_running_requests=3)
    ear = Ear()
    for handle in range(6):
        engine.submit(ear, handle, [handle] * 5, max_tokens=50)
    for _ in range(6):
        engine.step()
    stats = engine.core.stats()
    assert (stats.running, stats.waiting) == (3, 3)
    engine.core.abort_all("all out")
    engine.deliver()
    assert [ear.finish(handle) for handle in range(6)] == ["ABORT"] * 6
    engine.check_idle()
    assert engine.answer([1, 2], max_tokens=2).finish(1) == "LENGTH"


def test_w03_a_receiver_that_leaves_takes_its_requests_along_and_hears_nothing() -> None:
    engine = SmallEngine()
    gone, stays = Ear(), Ear()
    engine.submit(gone, 1, PROMPT, max_tokens=20)
    engine.submit(stays, 1, PROMPT, max_tokens=20)
    engine.step()
    engine.core.detach(gone)
    engine.run()
    assert not gone.items
    assert stays.ids(1) == expected_greedy(PROMPT, 20)
    engine.check_idle()
