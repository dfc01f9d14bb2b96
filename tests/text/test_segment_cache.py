"""The cache gives what the tokenizer gives, and tokenizes nothing twice that it keeps."""

import re
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.text.segment_cache import SegmentCache

CUTS = re.compile(r"<[ab]>")


class Counting:
    """Tokenizes to code points and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str]) -> "list[array[int]]":
        self.asked += texts
        return [array("I", map(ord, text)) for text in texts]


TURN = "<a>" + "x" * 30
NEXT = "<b>" + "y" * 30


def test_a_grown_conversation_tokenizes_only_what_is_new() -> None:
    tokenizer = Counting()
    cache = SegmentCache(tokenizer, CUTS, 10_000)
    cache.encode(TURN)
    assert cache.encode(TURN + NEXT).tolist() == [ord(c) for c in TURN + NEXT]
    assert tokenizer.asked == [TURN, NEXT]
    assert (cache.hit_chars, cache.missed_chars) == (33, 66)


def test_what_stands_between_the_messages_of_every_chat_is_tokenized_once() -> None:
    tokenizer = Counting()
    cache = SegmentCache(tokenizer, CUTS, 10_000)
    cache.encode("<a>hi 1<b>\n<a>")
    cache.encode("<a>hi 2<b>\n<a>")
    assert tokenizer.asked == ["<a>hi 1", "<b>\n", "<a>", "<a>hi 2"]


def test_without_a_proof_the_text_is_one_segment() -> None:
    tokenizer = Counting()
    SegmentCache(tokenizer, None, 10_000).encode(TURN + NEXT)
    assert tokenizer.asked == [TURN + NEXT]


@pytest.mark.parametrize("text", ["", "<a>", "<a><b>", "plain"])
def test_edges(text: str) -> None:
    assert SegmentCache(Counting(), CUTS, 1_000).encode(text).tolist() == [ord(c) for c in text]


def test_the_oldest_segment_leaves_first_and_the_budget_holds() -> None:
    tokenizer = Counting()
    cache = SegmentCache(tokenizer, CUTS, 2 * (33 + 64))
    for text in (TURN, NEXT, TURN, "<a>" + "z" * 30, NEXT):
        cache.encode(text)
        cache.check()
    assert tokenizer.asked.count(TURN) == 1
    assert tokenizer.asked.count(NEXT) == 2


@given(st.lists(st.lists(st.sampled_from(["<a>", "<b>", "word " * 8, "é"])), max_size=8))
def test_it_always_equals_the_tokenizer(texts: list[list[str]]) -> None:
    cache = SegmentCache(Counting(), CUTS, 400)
    for pieces in texts:
        text = "".join(pieces)
        assert cache.encode(text).tolist() == [ord(c) for c in text]
        cache.check()


def test_what_is_not_kept_would_have_to_be_tokenized() -> None:
    tokenizer = Counting()
    cache = SegmentCache(tokenizer, CUTS, 10_000)
    assert cache.unknown_chars(TURN + NEXT) == 66
    cache.encode(TURN)
    assert cache.unknown_chars(TURN + NEXT) == 33
    assert (tokenizer.asked, cache.hit_chars) == ([TURN], 0)
