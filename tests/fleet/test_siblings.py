"""Two processes over one fleet: what one sends, the other counts at once as its own."""

import gc
import random
import weakref
from dataclasses import replace

import pytest

from books import IDLE, KEY, ask, identity, ids_of
from clocks import FakeClock
from radixgate.fleet.fleet import Fleet, Lease, Outcome, WorkerState
from radixgate.fleet.news import News, PlacementEnd, Share
from radixgate.fleet.siblings import Siblings
from radixgate.policies.cache_aware import CacheAwareConfig, cache_aware


class Process:
    """One of several over the workers `a` and `b`."""

    def __init__(self, peer: int, clock: FakeClock, *, reports_kv: bool = True) -> None:
        self.calls = 0
        policy = cache_aware(CacheAwareConfig(), random.Random(peer))
        self.fleet = Fleet(policy, clock, random.Random(peer))
        self.siblings = Siblings(peer, self._call)
        self.siblings.open(self.fleet)
        self._reports_kv = reports_kv
        for name in ("a", "b"):
            self.join(name)

    def _call(self) -> None:
        self.calls += 1

    def join(self, name: str) -> None:
        self.fleet.admit(identity(name, reports_kv=self._reports_kv))
        self.fleet.set_state(name, WorkerState.READY)

    def lease(self, text: str, only: str = "a") -> Lease:
        return self.fleet.lease(ask(text), {"a", "b"} - {only})

    def counts(self, name: str) -> tuple[int, int, int]:
        view = self.fleet.worker(name)
        assert view is not None
        return view.in_flight, view.tokens_in_flight, view.uncached_tokens_in_flight

    def depth(self, name: str, text: str) -> int:
        return self.fleet.mirror_of(name).depths(ids_of(text)).get(name, 0)


class Pair:
    def __init__(self, *, reports_kv: bool = True) -> None:
        self.clock = FakeClock()
        self.one = Process(1, self.clock, reports_kv=reports_kv)
        self.two = Process(2, self.clock, reports_kv=reports_kv)

    def tell(self, *, whole: bool = False) -> None:
        """What each has to tell reaches the other."""
        for teller, hearer in ((self.one, self.two), (self.two, self.one)):
            news = teller.siblings.take(whole=whole)
            if news is not None:
                hearer.siblings.hear(news)
        self.one.fleet.check()
        self.two.fleet.check()


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


def test_each_end_is_that_of_its_own_prompt() -> None:
    pair = Pair()
    failed = pair.one.lease("x" * 100)
    pair.one.lease("y" * 100)
    pair.tell()
    failed.close(Outcome.FAILED)
    pair.tell()
    assert [pair.two.depth("a", text) for text in ("x" * 100, "y" * 100)] == [0, 100]


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


def test_a_placed_prompt_counts_as_cached_at_the_sibling_until_it_fails() -> None:
    pair = Pair()
    lease = pair.one.lease("x" * 100)
    pair.tell()
    assert pair.two.depth("a", "x" * 100) == 100
    lease.close(Outcome.FAILED)
    pair.tell()
    assert pair.two.depth("a", "x" * 100) == 0


def test_without_reports_an_answered_prompt_stays_believed_everywhere() -> None:
    pair = Pair(reports_kv=False)
    lease = pair.one.lease("x" * 100)
    lease.first_output()
    lease.close(Outcome.OK, 0)
    pair.tell()
    assert pair.two.depth("a", "x" * 100) == 100
    pair.clock.advance(600)
    assert pair.two.depth("a", "x" * 100) == 100


def test_a_reply_that_told_of_less_cached_than_believed_corrects_the_sibling_too() -> None:
    pair = Pair(reports_kv=False)
    for text, cached in (("o" * 50, 0), ("x" * 100, 0), ("x" * 100, 0)):
        pair.clock.advance(1.0)
        lease = pair.one.lease(text)
        lease.first_output()
        lease.close(Outcome.OK, cached)
        pair.tell()
    # x was evicted since it was answered, and with it what had been used before it.
    assert pair.one.depth("a", "o" * 50) == pair.two.depth("a", "o" * 50) == 0
    assert pair.one.depth("a", "x" * 100) == pair.two.depth("a", "x" * 100) == 100


def test_a_late_word_of_the_dead_changes_nothing() -> None:
    pair = Pair()
    for text in ("x" * 100, "y" * 100):
        pair.one.lease(text)
    pair.tell()
    pair.two.siblings.gone(1)
    pair.two.siblings.hear(
        News([], [], [PlacementEnd(1, 1, False, None), PlacementEnd(1, 2, False, None)])
    )
    assert [pair.two.depth("a", text) for text in ("x" * 100, "y" * 100)] == [100, 100]


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


def test_prompts_of_a_sibling_are_recent_prompts() -> None:
    pair = Pair()
    for number in range(4):
        pair.one.lease(f"shared beginning {number}")
    pair.tell()
    pair.two.lease("shared beginning of mine")
    rehearsal = pair.two.fleet.rehearse(ask("shared beginning 9"))
    share = rehearsal.candidates.read_recent_share(rehearsal.candidates.ids.index("a"))
    assert share == pytest.approx(5 / 6)
