"""Two processes over one fleet: what one sends, the other counts at once as its own."""

import gc
import weakref
from dataclasses import replace

import pytest
from msgspec import structs

from books import IDLE, KEY, ask
from clocks import FakeClock
from radixgate.fleet.fleet import Outcome
from radixgate.fleet.news import Share
from radixgate.fleet.worker_record import WorkerRecord
from sibling_processes import Pair, Process


def test_a_lease_counts_at_the_sibling_from_its_opening_to_its_end() -> None:
    pair = Pair()
    lease = pair.one.lease("x" * 100)
    assert pair.two.counts("a") == (0, 0, 0)
    pair.tell()
    assert pair.two.counts("a") == (1, 100, 100)
    lease.first_output()
    pair.tell()
    assert pair.two.counts("a") == (1, 100, 0)
    lease.close(Outcome.OK)
    pair.tell()
    assert pair.two.counts("a") == pair.one.counts("a") == (0, 0, 0)


def test_a_prompt_shorter_than_a_block_is_news_too() -> None:
    pair = Pair()
    pair.tell()  # of who has joined
    lease = pair.one.fleet.lease(structs.replace(ask("x" * 5), blocks={}), ["b"])
    pair.tell()
    assert pair.two.counts("a") == (1, 5, 5)
    lease.first_output()
    pair.tell()
    assert pair.two.counts("a") == (1, 5, 0)
    lease.close(Outcome.OK)
    pair.tell()
    assert pair.two.counts("a") == (0, 0, 0)
    assert pair.one.calls == 3


def test_nothing_is_kept_of_a_worker_that_has_left() -> None:
    pair = Pair()
    pair.one.lease("x" * 100)
    pair.tell(whole=True)
    for process in (pair.one, pair.two):
        process.fleet.remove("a")
        process.fleet.remove("b")
    gone = weakref.ref(pair.two.siblings._shared[KEY][0])
    pair.tell(whole=True)
    gc.collect()
    assert gone() is None
    assert not pair.two.siblings._loads
    assert not pair.one.siblings._told
    for process in (pair.one, pair.two):
        process.join("a")
    pair.one.lease("x" * 100)
    pair.tell()
    assert pair.two.counts("a") == (1, 100, 100)


def test_what_two_siblings_have_sent_is_not_taken_for_one_s_own() -> None:
    clock = FakeClock()
    one, two, three = (Process(peer, clock) for peer in (1, 2, 3))
    for process, text in ((one, "x" * 100), (three, "y" * 30)):
        process.lease(text)
        news = process.siblings.take()
        assert news is not None
        two.siblings.hear(news)
    assert two.counts("a") == (2, 130, 130)
    news = two.siblings.take(whole=True)
    assert news is not None
    assert set(news.loads) == {Share(2, "a", 0, 0, 0), Share(2, "b", 0, 0, 0)}


def test_what_was_heard_is_not_told_back() -> None:
    pair = Pair()
    pair.one.lease("x" * 100)
    pair.tell()
    assert pair.two.siblings.take() is None
    pair.two.lease("y" * 10)
    pair.tell()
    assert pair.one.counts("a") == pair.two.counts("a") == (2, 110, 110)


def test_a_dead_sibling_s_requests_count_no_more() -> None:
    pair = Pair()
    pair.one.lease("x" * 100)
    pair.two.lease("y" * 7)
    pair.tell()
    pair.two.siblings.gone(1)
    assert pair.two.counts("a") == (1, 7, 7)
    pair.two.siblings.gone(1)
    assert pair.two.counts("a") == (1, 7, 7)


def test_a_sibling_may_die_after_a_worker_that_it_had_told_of_has_left() -> None:
    pair = Pair()
    pair.one.lease("x" * 100)
    pair.tell()
    pair.two.fleet.remove("a")
    pair.two.siblings.gone(1)
    pair.two.join("a")
    assert pair.two.counts("a") == (0, 0, 0)


def test_a_worker_admitted_anew_gets_the_sibling_s_counts_with_the_whole_ones() -> None:
    pair = Pair()
    pair.one.lease("x" * 100)
    pair.tell()
    pair.two.join("a")
    assert pair.two.counts("a") == (0, 0, 0)
    pair.tell()
    assert pair.two.counts("a") == (0, 0, 0)
    pair.tell(whole=True)
    assert pair.two.counts("a") == (1, 100, 100)
    pair.tell(whole=True)
    assert pair.two.counts("a") == (1, 100, 100)


def test_there_is_one_call_until_the_news_are_taken() -> None:
    process = Process(1, FakeClock())
    process.lease("x")
    process.lease("y")
    assert process.calls == 1
    assert process.siblings.take() is not None
    process.lease("z")
    assert process.calls == 2


def test_each_step_of_a_request_is_news() -> None:
    process = Process(1, FakeClock())
    lease = process.lease("x")
    assert process.siblings.take() is not None
    lease.first_output()
    assert process.calls == 2
    assert process.siblings.take() is not None
    lease.close(Outcome.OK)
    assert process.calls == 3
    news = process.siblings.take()
    assert news is not None
    assert [(end.number, end.computed) for end in news.ended] == [(1, True)]
    assert news.loads == [Share(1, "a", 0, 0, 0)]


def test_a_report_does_not_count_a_sibling_s_tokens_again() -> None:
    """Of 170 tokens that the worker reports, 100 are the sibling's, and 70 another gateway's."""
    pair = Pair()
    pair.one.lease("x" * 100)
    pair.tell()
    told = replace(IDLE, queued_uncached_tokens=170, queued_uncached_tokens_yours=0)
    pair.two.fleet.report_load("a", told)
    rehearsal = pair.two.fleet.rehearse(ask("q"))
    queues = dict(
        zip(
            rehearsal.candidates.ids,
            zip(
                rehearsal.candidates.uncached_tokens_in_flight,
                rehearsal.candidates.queued_elsewhere,
                strict=True,
            ),
            strict=True,
        )
    )
    assert queues["a"] == (100, 70)


def test_a_report_of_less_to_do_is_news_and_one_of_no_change_is_none() -> None:
    process = Process(1, FakeClock())
    number = process.lease("x" * 1_000).number
    assert process.siblings.take() is not None
    told = replace(IDLE, seen_number=number, queued_uncached_tokens_yours=300)
    process.fleet.report_load("a", told)
    assert process.calls == 2
    process.fleet.report_load("b", IDLE)
    assert process.calls == 2
    news = process.siblings.take()
    assert news is not None
    assert news.loads == [Share(1, "a", 1, 1_000, 300)]
    process.fleet.report_load("a", told)
    assert process.calls == 2


def test_a_report_that_is_too_old_is_news_as_our_prompts_count_whole_again() -> None:
    process = Process(1, FakeClock())
    number = process.lease("x" * 1_000).number
    told = replace(IDLE, seen_number=number, queued_uncached_tokens_yours=300)
    process.fleet.report_load("a", told)
    assert process.siblings.take() is not None
    process.clock.advance(3.0)
    process.fleet.rehearse(ask("q"))  # any decision finds that it is too old
    news = process.siblings.take()
    assert news is not None
    assert news.loads == [Share(1, "a", 1, 1_000, 1_000)]


def test_of_a_worker_that_begins_anew_nothing_is_under_way() -> None:
    process = Process(1, FakeClock())
    process.lease("x" * 100)
    assert process.siblings.take() is not None
    process.join("a")
    process.lease("y" * 10, "b")
    news = process.siblings.take()
    assert news is not None
    assert set(news.loads) == {Share(1, "a", 0, 0, 0), Share(1, "b", 1, 10, 10)}


def test_only_who_has_moved_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(1, FakeClock())
    assert process.siblings.take() is None
    asked: list[str] = []
    look = process.fleet.record

    def counted(name: str) -> WorkerRecord | None:
        asked.append(name)
        return look(name)

    monkeypatch.setattr(process.fleet, "record", counted)
    process.lease("x" * 100)
    process.lease("y" * 100)
    assert process.siblings.take() is not None
    assert process.siblings.take() is None
    assert asked == ["a"]


def test_reports_of_several_workers_are_one_call() -> None:
    process = Process(1, FakeClock())
    numbers = {name: process.lease("x" * 1_000, name).number for name in ("a", "b")}
    assert process.siblings.take() is not None
    for name, number in numbers.items():
        told = replace(IDLE, seen_number=number, queued_uncached_tokens_yours=300)
        process.fleet.report_load(name, told)
    assert process.calls == 2


def test_a_sibling_is_told_what_is_left_of_a_prompt_and_not_the_whole() -> None:
    pair = Pair()
    number = pair.one.lease("x" * 1_000).number
    told = replace(IDLE, seen_number=number, queued_uncached_tokens_yours=300)
    pair.one.fleet.report_load("a", told)
    pair.one.lease("y" * 200)
    pair.tell()
    assert pair.two.counts("a") == (2, 1_200, 500)


@pytest.mark.parametrize(
    ("texts", "counted"),
    [
        pytest.param(["y" * 100], (1, 100, 100), id="as-much-as-was-told-before"),
        pytest.param(["y" * 100, "z"], (2, 101, 101), id="more"),
        pytest.param([], (0, 0, 0), id="nothing"),
    ],
)
@pytest.mark.parametrize("hears_of_it", [True, False])
def test_what_a_worker_has_that_began_anew_is_told_in_any_case(
    texts: list[str], counted: tuple[int, int, int], hears_of_it: bool
) -> None:
    pair = Pair()
    pair.one.lease("x" * 100)
    pair.tell()
    for process in (pair.one, pair.two) if hears_of_it else (pair.one,):
        process.join("a")
    for text in texts:
        pair.one.lease(text)
    pair.one.lease("q", "b")
    pair.tell()
    assert pair.two.counts("a") == pair.one.counts("a") == counted


def test_a_worker_that_left_and_comes_back_in_between_is_told_too() -> None:
    pair = Pair()
    pair.one.lease("x" * 100)
    pair.tell()
    pair.one.fleet.remove("a")
    pair.one.lease("q", "b")
    pair.tell()
    pair.one.join("a")
    pair.one.lease("q", "b")
    pair.tell()
    assert pair.two.counts("a") == pair.one.counts("a") == (0, 0, 0)


def test_leases_of_a_worker_that_has_dropped_its_cache_stay_told() -> None:
    pair = Pair(reports_kv=False)
    pair.one.lease("x" * 100)
    pair.tell()
    pair.one.fleet.flushed("a")
    pair.one.lease("q", "b")
    pair.tell()
    assert pair.two.counts("a") == pair.one.counts("a") == (1, 100, 100)
