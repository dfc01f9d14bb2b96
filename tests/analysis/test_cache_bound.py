"""What a cache without end could hold, against counting by hand."""

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.analysis.cache_bound import PrefixTree, cache_use, reusable_shares
from request_records import record


@given(texts=st.lists(st.binary(max_size=12).map(lambda b: bytes(x % 3 for x in b)), max_size=12))
def test_the_tree_finds_the_longest_beginning_of_any_earlier_text(texts: list[bytes]) -> None:
    tree = PrefixTree()
    earlier: list[bytes] = []
    for text in texts:
        best = 0
        for other in earlier:
            common = 0
            while common < min(len(text), len(other)) and text[common] == other[common]:
                common += 1
            best = max(best, common)
        assert tree.add(text) == best
        earlier.append(text)


def test_the_last_token_is_always_computed() -> None:
    ids = [array("I", row).tobytes() for row in ([1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 9], [256])]
    assert reusable_shares(ids, 4) == [0.0, 0.75, 2 / 3, 0.0]


def test_tokens_that_share_only_bytes_share_nothing() -> None:
    ids = [array("I", [0x0101]).tobytes() * 2, array("I", [0x0201]).tobytes() * 2]
    assert reusable_shares(ids, 4) == [0.0, 0.0]


def test_the_order_changes_nothing_in_all() -> None:
    texts = [b"abcd1", b"abcd2", b"ab3", b"abcd1x"]
    forward = [share * len(text) for share, text in zip(reusable_shares(texts), texts, strict=True)]
    back = texts[::-1]
    backward = [share * len(text) for share, text in zip(reusable_shares(back), back, strict=True)]
    assert sum(forward) == pytest.approx(sum(backward), abs=1.0)


def test_use_is_set_against_the_bound() -> None:
    found = cache_use(
        [
            replace(record((1.0, 1), prompt=100, cached=0), reusable_share=0.0),
            replace(record((1.0, 1), prompt=100, cached=60), reusable_share=0.8),
            replace(record((1.0, 1), prompt=100, cached=None), reusable_share=0.8),
        ]
    )
    assert found.cached_share == pytest.approx(0.3)
    assert found.bound_share == pytest.approx(0.4)
    assert found.efficiency == pytest.approx(0.75)


def test_what_is_not_known_is_absent() -> None:
    assert cache_use([record((1.0, 1))]).cached_share is None
    found = cache_use([record((1.0, 1), cached=10)])
    assert (found.cached_share, found.bound_share, found.efficiency) == (0.1, None, None)
