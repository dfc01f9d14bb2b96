"""A worker that reports nothing: recency, three bounds, and correction by its replies."""

import pytest

from radixgate.radix_mirror.budget import APPROXIMATE_BYTES
from radixgate.radix_mirror.mirror import MirrorConfig
from text_mirror import TextMirror


def held(mirror: TextMirror, *texts: str) -> list[int]:
    mirror.mirror.check()
    return [mirror.match(text)[1] for text in texts]


def test_beyond_its_capacity_the_least_recent_leaves_go_first() -> None:
    mirror = TextMirror()
    mirror.add("w", capacity=6)
    mirror.insert("abcd", "w")
    mirror.insert("xy", "w")
    mirror.insert("abz", "w")
    assert held(mirror, "abcd", "abz", "xy") == [3, 3, 2]
    mirror.insert("q", "w")
    assert held(mirror, "abcd", "abz", "xy", "q") == [2, 3, 2, 1]


def test_a_prompt_larger_than_the_capacity_keeps_its_head() -> None:
    mirror = TextMirror()
    mirror.add("w", capacity=3)
    mirror.insert("abcdef", "w")
    assert held(mirror, "abcdef") == [3]


def test_one_budget_holds_over_all_workers() -> None:
    mirror = TextMirror(MirrorConfig(mirror_budget_bytes=6 * APPROXIMATE_BYTES))
    for time, (text, worker) in enumerate((("abc", "w1"), ("xyz", "w2"), ("pq", "w1"))):
        mirror.clock.advance(time)
        mirror.insert(text, worker)
    assert held(mirror, "abc", "xyz", "pq") == [1, 3, 2]
    assert len(mirror.mirror) == 6


def test_beyond_the_budget_the_oldest_use_of_all_workers_leaves_first() -> None:
    mirror = TextMirror(MirrorConfig(mirror_budget_bytes=6 * APPROXIMATE_BYTES))
    for text, worker in (("a", "w1"), ("xyz", "w2"), ("abc", "w1"), ("pq", "w1")):
        mirror.clock.advance(1)
        mirror.insert(text, worker)
    assert held(mirror, "abc", "xyz", "pq") == [3, 1, 2]


def test_what_is_not_used_is_forgotten_after_a_while() -> None:
    mirror = TextMirror(MirrorConfig(mirror_ttl_s=60))
    mirror.insert("abcd", "w")
    mirror.clock.advance(40)
    mirror.insert("abz", "w")
    mirror.clock.advance(20)
    assert held(mirror, "abcd", "abz") == [2, 3]
    mirror.clock.advance(40)
    assert held(mirror, "abcd", "abz") == [0, 0]
    assert len(mirror.mirror) == 0


def test_a_withdrawn_prompt_leaves_what_was_known_before_it() -> None:
    mirror = TextMirror()
    mirror.insert("ab", "w")
    failed = mirror.insert("abcd", "w")
    mirror.mirror.withdraw(failed)
    mirror.mirror.withdraw(failed)
    assert held(mirror, "abcd") == [2]


def test_a_withdrawn_prompt_leaves_what_a_later_one_uses() -> None:
    mirror = TextMirror()
    failed = mirror.insert("abcd", "w")
    mirror.insert("abx", "w")
    mirror.mirror.withdraw(failed)
    assert held(mirror, "abcd", "abx") == [2, 3]


def send(
    mirror: TextMirror, text: str, cached: int | None = None, *, answered: bool = True
) -> None:
    placement = mirror.insert(text, "w")
    if answered:
        mirror.mirror.settle(placement, cached)
    mirror.clock.advance(1)


@pytest.mark.parametrize(
    ("cached", "older", "newer"),
    [
        pytest.param(None, 3, 3, id="the-reply-does-not-say"),
        pytest.param(4, 3, 3, id="as-believed"),
        pytest.param(2, 3, 3, id="half-may-be-rounding"),
        pytest.param(1, 0, 3, id="evicted-with-all-that-was-older"),
        pytest.param(0, 0, 3, id="nothing-left"),
    ],
)
def test_a_reply_with_few_cached_tokens_shows_what_else_is_gone(
    cached: int | None, older: int, newer: int
) -> None:
    mirror = TextMirror()
    send(mirror, "old")
    send(mirror, "abcd")
    send(mirror, "new")
    send(mirror, "abcd", cached)
    assert held(mirror, "old", "new", "abcd") == [older, newer, 4]


def test_a_prompt_still_being_computed_says_nothing_about_evictions() -> None:
    mirror = TextMirror()
    send(mirror, "old")
    send(mirror, "abcd", answered=False)
    send(mirror, "abcd", 0)
    assert held(mirror, "old") == [3]


def test_the_first_output_is_an_answer() -> None:
    mirror = TextMirror()
    send(mirror, "old")
    mirror.mirror.answered(mirror.insert("abcd", "w"))
    mirror.clock.advance(1)
    send(mirror, "abcd", 0)
    assert held(mirror, "old") == [0]


def test_a_settled_prompt_that_is_withdrawn_or_settled_again_stays() -> None:
    mirror = TextMirror()
    placement = mirror.insert("abcd", "w")
    mirror.mirror.settle(placement, 0)
    mirror.mirror.withdraw(placement)
    mirror.mirror.settle(placement, 0)
    assert held(mirror, "abcd") == [4]


def test_a_placement_outlives_its_worker_without_harm() -> None:
    mirror = TextMirror()
    first, second = mirror.insert("abcd", "w"), mirror.insert("abcd", "w")
    mirror.mirror.remove_worker("w")
    mirror.mirror.settle(first, 0)
    mirror.insert("abcd", "v")
    mirror.mirror.withdraw(second)
    assert mirror.depths("abcd") == {"v": 4}
    mirror.mirror.check()
