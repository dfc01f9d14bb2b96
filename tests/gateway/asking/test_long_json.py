"""Long JSON that is looked at in slices says what the decoder says."""

import json
from array import array

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.errors import RequestError
from radixgate.gateway.asking import long_json
from radixgate.gateway.asking.large_bodies import priority_of
from radixgate.gateway.asking.long_json import (
    first_items,
    long_token_ids,
    outer_integer,
    string_end,
)
from radixgate.proto.fields import whole_number

TEXTS = st.text(st.sampled_from('ab"\\\n{}[],:é'), max_size=40)
VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.sampled_from((2.0, -3.0, 2.5, "priority")) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS | st.just("priority"), inner, max_size=4)
    ),
)


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_SLICE_BYTES", "_IN_STRING_BYTES"):
        monkeypatch.setattr(long_json, name, 3)


@given(TEXTS, TEXTS)
def test_a_string_ends_where_it_ends(text: str, behind: str) -> None:
    written = msgspec.json.encode(text)
    more = written + msgspec.json.encode(behind)
    assert string_end(more, 1) == len(written) - 1
    assert string_end(written[:-1], 1) == -1


@given(st.lists(VALUES, max_size=6), st.integers(1, 7))
def test_an_array_is_cut_behind_an_item(values: list[object], most: int) -> None:
    for written in (msgspec.json.encode(values), json.dumps(values, indent=1).encode()):
        first = first_items(written, most)
        assert first is not None
        assert json.loads(first) == values[:most]


def test_an_item_that_takes_too_many_steps_is_not_seen_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_json, "_MOST_STEPS", 20)
    assert first_items(json.dumps([[1] * 30, 5]).encode(), 9) is None
    assert first_items(json.dumps([7, [1] * 30, 5]).encode(), 9) == b"[7]"


@given(st.dictionaries(TEXTS | st.just("priority"), VALUES, max_size=5))
def test_an_outer_integer_is_found_at_either_end(values: dict[str, object]) -> None:
    wanted = whole_number(values.get("priority"))
    for written in (msgspec.json.encode(values), json.dumps(values, indent=1).encode()):
        assert outer_integer(written, b"priority") == wanted
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(long_json, "_NEAR_BYTES", 1)
            assert outer_integer(written, b"priority") == wanted, "by the walk"


PLAIN = 'a "priority": 8, b' * 4 + "long" * 400_000
IDS = [7, 70, 700] * 80_000
CHAT = {"role": "user", "content": PLAIN, "priority": 9}
LONG = 'a \\" \'priority": 8,' * 200_000


@pytest.mark.parametrize(
    ("body", "priority"),
    [
        pytest.param({"model": "m", "priority": 3, "text": LONG}, 3, id="in-front"),
        pytest.param({"text": LONG, "priority": -3}, -3, id="behind"),
        pytest.param({"text": LONG, "priority": 10**17}, 2**31 - 1, id="more-than-there-is"),
        pytest.param({"priority": 4.0, "text": LONG}, 4, id="written-as-a-fraction"),
        pytest.param({"text": LONG, "priority": 4.5}, 0, id="a-fraction"),
        pytest.param({"text": LONG, "tools": [{"priority": 5}]}, 0, id="deeper"),
        pytest.param({"text": LONG, "priority": "5"}, 0, id="text"),
        pytest.param({"text": PLAIN, "priority": 5, "more": PLAIN}, 5, id="between-texts"),
        pytest.param({"input_ids": IDS, "priority": 5, "ids": IDS}, 5, id="between-ids"),
        pytest.param({"x": [CHAT, PLAIN], "priority": -5, "y": [[LONG]]}, -5, id="between-arrays"),
        pytest.param({"x": PLAIN, "z": {"priority": 5}, "y": PLAIN}, 0, id="between-and-deeper"),
        pytest.param(
            {"x": PLAIN, "priority": 5, "service_tier": "priority", "y": PLAIN},
            5,
            id="also-a-value",
        ),
        pytest.param({"text": LONG, "priority": 5, "more": LONG}, 0, id="between-many-quotes"),
        pytest.param({"a": {"priority": 5}, "text": LONG, "b": ["priority"]}, 0, id="neither"),
        pytest.param([{"priority": 5}, LONG], 0, id="no-object"),
    ],
)
def test_the_priority_of_a_large_body(body: object, priority: int) -> None:
    assert priority_of(json.dumps(body).encode()) == priority


@pytest.mark.parametrize(
    ("blanks", "priority"),
    [pytest.param(40, 5, id="some"), pytest.param(100_000, None, id="without-end")],
)
@pytest.mark.parametrize("field", ['"priority":_5', '"priority"_:5'])
def test_blanks_are_not_read_on_and_on_for_a_priority(
    field: str, blanks: int, priority: int | None
) -> None:
    far = "x" * 20_000
    body = f'{{"x":"{far}",{field.replace("_", " " * blanks)},"y":"{far}"}}'
    assert outer_integer(body.encode(), b"priority") == priority


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1))
def test_token_ids_are_read_in_slices(ids: list[int]) -> None:
    for written in (msgspec.json.encode(ids), json.dumps(ids, indent=1).encode()):
        assert long_token_ids(written, "prompt") == array("I", ids)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param(b"[1, 22, 333, -4]", r"prompt\[3\] must be a token id, not -4", id="negative"),
        pytest.param(b"[1, 22, 333, 4.5]", r"prompt\[3\] must be a token id, not 4.5", id="broken"),
        pytest.param(b"[1, 22, true, 4]", r"prompt\[2\] must be a token id, not True", id="true"),
    ],
)
def test_what_is_no_token_id_is_named_with_its_place(written: bytes, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        long_token_ids(written, "prompt")


@pytest.mark.parametrize("written", [b"[1, [2]]", b'[1, "2"]', b"[1, {}]"])
def test_what_is_no_array_of_numbers_is_left_to_others(written: bytes) -> None:
    assert long_token_ids(written, "prompt") is None
