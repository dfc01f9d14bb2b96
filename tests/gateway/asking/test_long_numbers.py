"""Long arrays of numbers are found in slices, and no body is read otherwise for it."""

import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.errors import RequestError
from radixgate.gateway.asking import large_bodies, long_json, long_numbers
from radixgate.gateway.asking import salted_body as salted_bodies
from radixgate.gateway.asking.foreign_request import read_foreign
from radixgate.gateway.asking.large_bodies import read_large, read_large_object
from radixgate.gateway.asking.salted_body import salted_body
from radixgate.gateway.attempt.caller import Caller
from radixgate.proto.fields import decode_object

LEAST, SLICE = 30, 7
IDS = list(range(40))


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_bodies, "_LONG_BYTES", LEAST)
    monkeypatch.setattr(long_numbers, "_SLICE_BYTES", SLICE)
    monkeypatch.setattr(long_numbers, "_STEP_BYTES", SLICE)
    monkeypatch.setattr(long_json, "_SLICE_BYTES", SLICE)


def found(written: bytes) -> dict[str, bytes]:
    spans = long_numbers.long_numbers(written, {"input_ids", "prompt"}, LEAST)
    return {name: written[start:end] for name, (start, end) in spans.items()}


@pytest.mark.parametrize("indent", [None, 1])
def test_each_is_found_as_it_is_written(indent: int | None) -> None:
    body = {"model": 'a "b" [c', "input_ids": IDS, "x": {"prompt": IDS}, "prompt": IDS[:3]}
    written = json.dumps(body, indent=indent).encode()
    ids = json.dumps(body, indent=indent).split('"input_ids": ')[1].split("]")[0] + "]"
    assert found(written) == {"input_ids": ids.encode()}


@pytest.mark.parametrize(
    "written",
    [
        pytest.param('{"input_ids": %s, "input_ids": %s}', id="a-name-twice"),
        pytest.param('{"input_ids": %s, "input\\u005fids": %s}', id="a-name-in-escapes"),
        pytest.param('{"input_ids": %s, "a": "%s}', id="a-text-without-end"),
        pytest.param('{"input_ids": [[1], %s], "a": %s}', id="of-arrays"),
        pytest.param('[{"input_ids": %s}, %s]', id="no-object"),
        pytest.param('{"a": "\\"input_ids\\": %s", "b": %s}', id="in-a-text"),
    ],
)
def test_where_it_is_not_certain_nothing_is_found(written: str) -> None:
    assert found((written % (IDS, IDS)).encode()) == {}


def test_a_long_walk_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    written = json.dumps({"a": [{}] * 50, "input_ids": IDS}).encode()
    assert list(found(written)) == ["input_ids"]
    monkeypatch.setattr(long_numbers, "_MOST_STEPS", 100)
    assert found(written) == {}


@pytest.mark.parametrize("read", [read_large_object, lambda body: read_large(b"/generate", body)])
def test_no_call_of_a_decoder_takes_all_of_them(
    read: Callable[[bytes], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does keeps the interpreter to itself for as long."""
    taken: list[int] = []

    def counting(decode: Callable[[bytes], object]) -> Callable[[bytes], object]:
        def count(written: bytes) -> object:
            taken.append(len(written))
            return decode(written)

        return count

    for module in (large_bodies, long_numbers):
        monkeypatch.setattr(module, "_decode", counting(module._decode))
    written = json.dumps({"model": "m", "input_ids": IDS * 100}).encode()
    read(written)
    assert max(taken) < 100 < len(written)
    assert sum(taken) > len(written)


def outcome(read: Callable[[bytes], object], written: bytes) -> object:
    try:
        return read(written)
    except RequestError as error:
        return error.message


# Around and within: what JSON may have, and what it may not.
PIECES = st.sampled_from(
    [
        *("1", "23", " ", ",", ",,", "]", "[", "-", "4.5", "null", "\n", '"a"', "{}", "\\"),
        *("1, 2, 3, 4", "7,8,9,10,11", "4294967296", "-1"),
    ]
)
ARRAYS = st.lists(PIECES, max_size=9).map("".join)


@given(ARRAYS, st.sampled_from([b"/generate", b"/v1/completions"]), st.booleans())
def test_whatever_stands_in_an_array_is_read_or_refused_as_by_one_call(
    within: str, path: bytes, late: bool
) -> None:
    name = "input_ids" if path == b"/generate" else "prompt"
    ids = ",".join(map(str, IDS))
    array = f"[{ids},{within}]" if late else f"[{within},{ids}]"
    written = f'{{"model": "m", "{name}": {array}, "n": 1}}'.encode()
    try:
        msgspec.json.decode(written)
    except msgspec.DecodeError:
        expected = outcome(lambda body: read_foreign(path, body), written)
        assert outcome(lambda body: read_large(path, body), written) == expected
        expected = outcome(decode_object, written)
        assert outcome(read_large_object, written) == expected
        return
    start, end = written.index(array.encode()), written.index(array.encode()) + len(array)
    if found(written):
        assert found(written) == {name: written[start:end]}
    read = outcome(read_large_object, written)
    if isinstance(read, dict):
        assert list(read[name]) == json.loads(written)[name]


@given(st.lists(st.integers(0, 2**32 - 1), min_size=12))
def test_ids_are_what_they_are(ids: list[int]) -> None:
    for written in (json.dumps({"input_ids": ids}), json.dumps({"input_ids": ids}, indent=1)):
        assert list(found(written.encode())) == ["input_ids"]
        read = read_large_object(written.encode())
        assert list(read["input_ids"]) == ids  # type: ignore[call-overload]
        prompt = read_large(b"/generate", written.encode()).prompt
        assert json.loads(prompt) == ids


@pytest.mark.parametrize("indent", [None, 1])
def test_a_tenant_s_salt_comes_to_them_and_they_stay_as_they_are_written(
    indent: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"input_ids": IDS, "cache_salt": "own", "n": 1}
    written = json.dumps(body, indent=indent).encode()
    tenant = Caller(tenant="a", salted=True)
    at_once = salted_body(written, tenant)
    monkeypatch.setattr(salted_bodies, "LARGE_BODY_BYTES", 100)
    monkeypatch.setattr(salted_bodies, "_decode", None)  # it would take all of it
    assert salted_body(written, tenant) == at_once
    assert json.loads(at_once)["input_ids"] == IDS
    assert found(at_once) == found(written)
