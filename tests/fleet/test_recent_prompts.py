"""How large a share of the recent prompts begins like this one."""

import pytest

from books import ids_of
from radixgate.fleet.recent_prompts import REMEMBERED, RecentPrompt, RecentPrompts


def prompt(text: str, mark: int = 0) -> RecentPrompt:
    return RecentPrompt(ids_of(text), mark)


def remembering(*texts: str) -> RecentPrompts:
    recent = RecentPrompts()
    for text in texts:
        recent.add(prompt(text))
    return recent


def test_the_share_falls_along_the_prompt() -> None:
    recent = remembering("systemA", "systemB", "other")
    asked = prompt("systemC")
    assert [recent.share(asked, depth) for depth in (0, 1, 6, 7, 8)] == [0, 0.5, 0.5, 0, 0]


def test_one_other_prompt_is_no_more_than_half() -> None:
    assert remembering("abc").share(prompt("abx"), 2) == 0.5


def test_a_prompts_own_past_does_not_count() -> None:
    recent = remembering("abc", "abcd")
    assert recent.share(prompt("abcde"), 3) == 0
    assert recent.share(prompt("abcd"), 3) == 0


def test_turns_of_one_conversation_are_one_prompt() -> None:
    recent = remembering("sA", "sAAA", "sAAAA", "sB")
    assert recent.share(prompt("sC"), 1) == 2 / 3


def test_a_later_turn_stands_for_one_conversation_only() -> None:
    recent = RecentPrompts()
    for mark in (1, 2, 3):
        recent.add(prompt("s", mark))
    recent.add(prompt("sAA", 4))
    assert recent.share(prompt("sB", 5), 1) == 1 / 2


def test_the_mark_tells_prompts_apart_that_differ_behind_their_blocks() -> None:
    recent = RecentPrompts()
    for mark in (1, 2, 2, 3):
        recent.add(prompt("system", mark))
    assert recent.share(prompt("system", 4), 6) == 3 / 4
    assert recent.share(prompt("system", 2), 6) == 2 / 3


def test_the_oldest_is_forgotten_first() -> None:
    recent = remembering("old", *(f"x{n:03}" for n in range(REMEMBERED)))
    assert recent.share(prompt("oldest!"), 3) == 0
    assert recent.share(prompt("xyz"), 1) == REMEMBERED / (REMEMBERED + 1)


def test_lengths_of_prompts_that_are_forgotten_are_not_tried_any_more() -> None:
    recent = remembering("a", "bb", "bbb", *(f"x{n:03}" for n in range(REMEMBERED)))
    assert recent._lengths == {4: REMEMBERED}


def test_a_prompt_without_blocks_is_not_remembered() -> None:
    assert remembering("", "").share(prompt("abc"), 1) == 0


def test_cleared_it_knows_nothing() -> None:
    recent = remembering("systemA", "systemB")
    recent.clear()
    assert recent.share(prompt("systemC"), 6) == 0
    recent.add(prompt("systemA"))
    assert recent.share(prompt("systemC"), 6) == 1 / 2


def test_a_beginning_asked_for_again_is_counted_along(monkeypatch: pytest.MonkeyPatch) -> None:
    recent = remembering(*(f"system{number:03}" for number in range(100)))
    assert recent.share(prompt("systemX"), 6) == 100 / 101
    monkeypatch.setattr(recent, "_look", None)  # at every prompt
    recent.add(prompt("systemY"))
    assert recent.share(prompt("systemX"), 6) == 101 / 102
