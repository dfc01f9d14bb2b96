"""Long texts in JSON are found by their quotes, and cut between characters where blocks end."""

import json

import pytest

from radixgate.gateway.asking import text_cut
from radixgate.gateway.asking.text_cut import cut_before, text_around, text_of
from radixgate.proto.blocks import blocks_in_bytes, bytes_in_blocks


@pytest.mark.parametrize(
    ("body", "at", "found"),
    [
        pytest.param(b'{"a":"text"}', 8, b"text", id="a-value"),
        pytest.param(b'{"name":1}', 4, b"name", id="a-key"),
        pytest.param(b'{"a":"x","b":"text"}', 17, b"text", id="not-the-first"),
        pytest.param(rb'{"a":"say \"hi\" now"}', 16, rb"say \"hi\" now", id="quotes-in-it"),
        pytest.param(rb'{"a":"x\\","b":"text"}', 18, b"text", id="backslash-at-its-end"),
        pytest.param(rb'{"a":"x\\\"y","b":[1,2]}', 21, None, id="in-an-array"),
        pytest.param(b'{"a":"x"}', 8, None, id="behind-the-last"),
        pytest.param(b'{"a":"x"}', 0, None, id="before-the-first"),
        pytest.param(b"[1,2,3]", 3, None, id="no-strings"),
    ],
)
def test_the_text_around_a_place(body: bytes, at: int, found: bytes | None) -> None:
    text = text_around(body, at)
    assert (None if text is None else body[text[0] : text[1]]) == found


def test_behind_too_many_quotes_no_text_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"a":"x","b":"text"}'
    monkeypatch.setattr(text_cut, "MAX_QUOTES", 8)
    assert text_around(body, 15) == (14, 18)
    monkeypatch.setattr(text_cut, "MAX_QUOTES", 7)
    assert text_around(body, 15) is None


@pytest.mark.parametrize("before", [0, 5, 300])
@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "as-it-is"])
@pytest.mark.parametrize("unit", ["plain text ", "a\nb", "é.", "漢", "a😀", '"\\'])
def test_both_sides_of_a_cut_are_the_whole_text(unit: str, ascii_only: bool, before: int) -> None:
    text = unit * (30_000 // len(unit))
    body = json.dumps([text], ensure_ascii=ascii_only).encode()
    start, end = 2, len(body) - 2
    cuts = 0
    for place in range(20_000, 20_020):
        found = cut_before(body, start, place, before)
        if found is None:
            continue
        cuts += 1
        cut, size = found
        assert cut <= place
        assert bytes_in_blocks(blocks_in_bytes(size)) == size
        left = text_of(body, start, cut)
        assert before + len(left) == size
        assert left + text_of(body, cut, end) == text.encode()
    assert cuts == 20


def test_no_cut_is_found_where_every_block_ends_inside_a_character() -> None:
    body = json.dumps(["é" * 8_000]).encode()
    assert cut_before(body, 2, 40_000, 6) is not None
    assert cut_before(body, 2, 40_000, 5) is None


def test_a_text_shorter_than_a_block_has_a_cut_only_at_its_beginning() -> None:
    body = b'["' + b"x" * 100 + b'"]'
    assert cut_before(body, 2, 90, 0) == (2, 0)
    assert cut_before(body, 2, 90, 100) is None
