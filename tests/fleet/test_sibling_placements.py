"""Prompts that one process places count as cached at the others too, until known not to be."""

import pytest

from books import MODEL, ask, identity
from clocks import FakeClock
from radixgate.fleet import siblings
from radixgate.fleet.fleet import FleetConfig, Outcome
from radixgate.fleet.identity import MirrorKey
from radixgate.fleet.news import News, PlacementEnd
from radixgate.radix_mirror.mirror import MirrorConfig
from sibling_processes import Pair, Process


def test_each_end_is_that_of_its_own_prompt() -> None:
    pair = Pair()
    failed = pair.one.lease("x" * 100)
    pair.one.lease("y" * 100)
    pair.tell()
    failed.close(Outcome.FAILED)
    pair.tell()
    assert [pair.two.depth("a", text) for text in ("x" * 100, "y" * 100)] == [0, 100]


def test_a_placed_prompt_counts_as_cached_at_the_sibling_until_it_fails() -> None:
    pair = Pair()
    lease = pair.one.lease("x" * 100)
    pair.tell()
    assert pair.two.depth("a", "x" * 100) == 100
    lease.close(Outcome.FAILED)
    pair.tell()
    assert pair.two.depth("a", "x" * 100) == 0


def test_a_placed_prompt_counts_for_as_long_as_in_a_fleet_of_one_process() -> None:
    pair = Pair()
    pair.one.lease("x" * 100)
    pair.tell()
    pair.clock.advance(1.999)
    assert [process.depth("a", "x" * 100) for process in (pair.one, pair.two)] == [100, 100]
    pair.clock.advance(0.001)
    assert [process.depth("a", "x" * 100) for process in (pair.one, pair.two)] == [0, 0]


def test_what_bounds_a_mirror_bounds_that_of_each_process() -> None:
    clock, config = FakeClock(), FleetConfig(mirror=MirrorConfig(mirror_ttl_s=5.0))
    process = Process(1, clock, reports_kv=False, config=config)
    process.lease("x" * 100).close(Outcome.OK)
    clock.advance(4.9)
    assert process.depth("a", "x" * 100) == 100
    clock.advance(0.1)
    assert process.depth("a", "x" * 100) == 0


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


def test_prompts_of_a_sibling_are_recent_prompts() -> None:
    pair = Pair()
    for number in range(4):
        pair.one.lease(f"shared beginning {number}")
    pair.tell()
    pair.two.lease("shared beginning of mine")
    rehearsal = pair.two.fleet.rehearse(ask("shared beginning 9"))
    share = rehearsal.candidates.read_recent_share(rehearsal.candidates.ids.index("a"))
    assert share == pytest.approx(5 / 6)


def test_a_placement_at_a_worker_that_is_not_here_or_cut_in_other_blocks_is_ignored() -> None:
    pair = Pair()
    pair.two.fleet.remove("a")
    pair.one.lease("x" * 100)
    pair.tell()
    pair.two.fleet.admit(identity("a", key=MirrorKey(MODEL, "tokens", 16)))
    pair.one.lease("y" * 100)
    pair.tell()
    assert pair.two.depth("a", "y" * 100) == 0
    pair.two.fleet.remove("a")
    pair.two.join("a")
    pair.one.lease("z" * 100)
    pair.tell()
    assert [pair.two.depth("a", letter * 100) for letter in "xyz"] == [0, 0, 100]


def test_of_many_placements_the_ends_of_the_last_are_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(siblings, "_MAX_FOLLOWED", 2)
    pair = Pair()
    leases = [pair.one.lease(letter * 100) for letter in "xyz"]
    pair.tell()
    for lease in leases:
        lease.close(Outcome.FAILED)
    pair.tell()
    # x is believed until its time is over, as if its end had not been told.
    assert [pair.two.depth("a", letter * 100) for letter in "xyz"] == [100, 0, 0]


def test_a_prompt_that_is_placed_nowhere_is_told_to_nobody() -> None:
    pair = Pair()
    pair.one.fleet.lease(ask(""))
    news = pair.one.siblings.take()
    assert news is not None
    assert (news.placed, len(news.loads)) == ([], 1)
