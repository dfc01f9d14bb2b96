"""Who runs when: budget, order, credit, retraction."""

import pytest

from history_model import expected_greedy
from small_engine import Ear, SmallEngine


def started(engine: SmallEngine, ear: Ear, handle: int) -> bool:
    return bool(ear.of(handle))


def order_of_first_tokens(engine: SmallEngine, ear: Ear) -> list[int]:
    """Handles in the order in which their first tokens come; runs until nobody can go on."""
    engine.run()
    return list(dict.fromkeys(item.handle for item in ear.items))


def test_a_step_has_one_budget_for_rows_and_chunks() -> None:
    engine = SmallEngine(chunked_prefill_size=12)
    ear = Ear()
    for handle in range(3):
        engine.submit(ear, handle, [handle], max_tokens=40)
    engine.run_until(lambda: all(started(engine, ear, handle) for handle in range(3)))
    engine.submit(ear, 9, list(range(40)), max_tokens=2)
    engine.model.largest_pass = 0
    rows_before = engine.model.rows
    engine.step()
    # Three rows decode; 9 tokens are left, of which whole pages are taken.
    assert engine.model.rows - rows_before == 3 + 8
    engine.run()
    assert engine.model.largest_pass <= 12
    assert ear.ids(9) == expected_greedy(list(range(40)), 2)


def test_prompts_go_on_by_a_page_a_step_however_many_decode() -> None:
    engine = SmallEngine(chunked_prefill_size=4)
    ear = Ear()
    for handle in range(6):
        engine.submit(ear, handle, [handle], max_tokens=30)
    engine.run_until(lambda: started(engine, ear, 5))
    engine.submit(ear, 9, list(range(20)), max_tokens=1)
    for _ in range(5):
        engine.step()
    assert ear.finish(9) == "LENGTH"


def test_without_chunking_a_prompt_is_computed_whole_and_the_sum_is_bounded() -> None:
    engine = SmallEngine(chunked_prefill_size=-1, max_prefill_tokens=16)
    ear = Ear()
    engine.submit(ear, 1, [1] * 30, max_tokens=1)
    engine.submit(ear, 2, [2] * 10, max_tokens=1)
    engine.submit(ear, 3, [3] * 6, max_tokens=1)
    engine.step()
    assert (ear.finish(1), ear.finish(2)) == ("LENGTH", None)
    engine.step()
    assert (ear.finish(2), ear.finish(3)) == ("LENGTH", "LENGTH")


def test_a_request_that_does_not_fit_holds_up_nobody_behind_it() -> None:
    engine = SmallEngine(pages=12)
    ear = Ear()
    engine.submit(ear, 1, [1] * 20, max_tokens=20)
    engine.step()
    engine.submit(ear, 2, [2] * 36, max_tokens=2)
    engine.submit(ear, 3, [3] * 4, max_tokens=2)
    engine.run_until(lambda: ear.finish(3) is not None)
    assert ear.finish(1) is None
    assert not ear.of(2)
    engine.run()
    assert ear.ids(2) == expected_greedy([2] * 36, 2)


def test_nobody_is_passed_over_for_ever() -> None:
    engine = SmallEngine(pages=12, max_passed_over=3, schedule_conservativeness=0.0)
    ear = Ear()
    engine.submit(ear, 0, [1] * 16, max_tokens=24)
    engine.step()
    engine.submit(ear, 1, [2] * 44, max_tokens=1)
    handle = 1
    while not ear.of(1):
        handle += 1
        engine.submit(ear, handle, [handle], max_tokens=2)
        engine.step()
        assert handle < 200, "passed over for ever"
    before = [i.handle for i in ear.items if i.handle > 1 and i.HasField("finish")]
    assert len(set(before)) == 3


def test_a_starved_request_does_not_hold_back_a_more_urgent_one() -> None:
    engine = SmallEngine(pages=12, max_passed_over=1, schedule_conservativeness=0.0)
    ear = Ear()
    engine.submit(ear, 0, [1] * 16, max_tokens=24)
    engine.step()
    engine.submit(ear, 1, [2] * 44, max_tokens=1)
    for handle in (2, 3, 4):
        engine.submit(ear, handle, [handle], max_tokens=1)
    engine.submit(ear, 9, [9], max_tokens=1, priority=1)
    engine.run_until(lambda: ear.finish(0) is not None)
    assert [ear.finish(handle) for handle in (9, 2, 3, 4)] == ["LENGTH", "LENGTH", None, None]
    engine.run()
    assert [ear.finish(handle) for handle in (1, 3, 4)] == ["LENGTH"] * 3


def test_lpm_takes_the_longest_cached_prefix_first() -> None:
    engine = SmallEngine(schedule_policy="lpm", max_running_requests=1)
    engine.answer([1] * 9, max_tokens=1)
    engine.answer([2] * 17, max_tokens=1)
    ear = Ear()
    engine.submit(ear, 1, [3] * 9, max_tokens=1)
    engine.submit(ear, 2, [1] * 9, max_tokens=1)
    engine.submit(ear, 3, [2] * 17, max_tokens=1)
    assert order_of_first_tokens(engine, ear) == [3, 2, 1]


def test_fcfs_takes_them_as_they_came_but_for_priority() -> None:
    engine = SmallEngine(max_running_requests=1)
    ear = Ear()
    for handle, priority in ((1, 0), (2, 0), (3, 5)):
        engine.submit(ear, handle, [handle], max_tokens=1, priority=priority)
    assert order_of_first_tokens(engine, ear) == [3, 1, 2]


def test_credit_is_spent_by_all_choices_together_and_more_lets_them_go_on() -> None:
    engine = SmallEngine()
    ear = Ear()
    engine.submit(ear, 1, [1, 2, 3], max_tokens=4, n=2, credit=3, temperature=1.0)
    engine.submit(ear, 2, [1, 2, 3], max_tokens=4)
    engine.run()
    assert len(ear.ids(1, 0)) + len(ear.ids(1, 1)) == 3
    assert ear.finish(2) == "LENGTH"
    engine.core.add_credit(ear, 1, 5)
    engine.run()
    assert len(ear.ids(1, 0)) + len(ear.ids(1, 1)) == 8
    engine.check_idle()


def test_without_credit_a_prompt_is_computed_up_to_its_last_page() -> None:
    engine = SmallEngine()
    ear = Ear()
    engine.submit(ear, 1, list(range(10)), max_tokens=2, credit=0)
    engine.run()
    assert not ear.items
    assert engine.core.stats().queued_uncached_tokens == 2
    engine.core.add_credit(ear, 1, 2)
    engine.run()
    assert ear.ids(1) == expected_greedy(list(range(10)), 2)


def test_when_pages_run_out_the_youngest_output_gives_way_and_comes_back_exactly() -> None:
    engine = SmallEngine(pages=16, schedule_conservativeness=0.0)
    ear = Ear()
    prompts = {handle: [handle] * 9 for handle in range(3)}
    for handle, prompt in prompts.items():
        engine.submit(ear, handle, prompt, max_tokens=40)
        engine.step()
        engine.step()
    engine.run()
    for handle, prompt in prompts.items():
        assert ear.ids(handle) == expected_greedy(prompt, 40)
    assert ear.counts(0).retractions == 0
    assert ear.counts(2).retractions > 0
    assert engine.core.stats().retractions_total > 0
    engine.check_idle()


def test_a_reader_without_credit_is_the_first_to_give_way() -> None:
    engine = SmallEngine(pages=16, schedule_conservativeness=0.0)
    ear = Ear()
    engine.submit(ear, 1, [1] * 20, max_tokens=30, credit=15)
    engine.run()
    engine.submit(ear, 2, [2] * 20, max_tokens=40)
    engine.run()
    assert ear.finish(2) == "LENGTH"
    assert ear.counts(2).retractions == 0
    engine.core.add_credit(ear, 1, 100)
    engine.run()
    assert ear.ids(1) == expected_greedy([1] * 20, 30)
    assert ear.counts(1).retractions == 1


def test_readers_without_credit_hold_up_nobody() -> None:
    engine = SmallEngine(pages=16)
    ear = Ear()
    for handle in (1, 2):
        engine.submit(ear, handle, [handle] * 20, max_tokens=30, credit=4)
    engine.submit(ear, 3, [3] * 20, max_tokens=30, credit=0)
    engine.run()
    engine.submit(ear, 4, [4] * 50, max_tokens=5)
    engine.run()
    assert ear.ids(4) == expected_greedy([4] * 50, 5)
    assert [len(ear.ids(handle)) for handle in (1, 2, 3)] == [4, 4, 0]
    for handle in (3, 2, 1):
        engine.core.add_credit(ear, handle, 100)
    engine.run()
    for handle in (1, 2, 3):
        assert ear.ids(handle) == expected_greedy([handle] * 20, 30)
    engine.check_idle()


@pytest.mark.parametrize(
    ("conservativeness", "retracts"),
    [pytest.param(0.0, True, id="none"), pytest.param(1.5, False, id="for-all-they-may-say")],
)
def test_room_is_kept_for_running_outputs(conservativeness: float, retracts: bool) -> None:
    engine = SmallEngine(pages=16, schedule_conservativeness=conservativeness)
    ear = Ear()
    for handle in range(4):
        engine.submit(ear, handle, [handle] * 9, max_tokens=30)
    engine.run()
    assert [ear.finish(handle) for handle in range(4)] == ["LENGTH"] * 4
    assert (engine.core.stats().retractions_total > 0) == retracts


def test_the_load_report_counts_what_each_receiver_still_has_to_have_computed() -> None:
    engine = SmallEngine(max_running_requests=1)
    engine.answer([1] * 8, max_tokens=1)
    mine, yours = Ear(), Ear()
    engine.submit(mine, 1, [1] * 20, max_tokens=1)
    engine.submit(yours, 1, [2] * 30, max_tokens=1)
    stats = engine.core.stats()
    assert dict(stats.queued_uncached_by_sink) == {mine: 12, yours: 30}
    engine.step()
    assert engine.core.stats().queued_uncached_by_sink[mine] == 4
    engine.run()
    assert engine.core.stats().queued_uncached_tokens == 0


def test_prefill_speed_is_what_the_totals_say() -> None:
    class SteppingClock:
        """Every look at it takes a moment."""

        time_s = 0.0

        def now(self) -> float:
            self.time_s += 0.25
            return self.time_s

    engine = SmallEngine(clock=SteppingClock(), chunked_prefill_size=32)
    engine.answer([1] * 20, max_tokens=3)
    stats = engine.core.stats()
    assert stats.prefill_tokens_total == 20
    assert stats.prefill_busy_us_total == 250_000
    assert stats.decode_step_s == pytest.approx(0.25)
