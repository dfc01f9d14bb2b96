"""Of large bodies as much is read as routing needs, and token ids by slices."""

import json
from array import array

import pytest

from radixgate.errors import RequestError
from radixgate.gateway.asking import large_bodies
from radixgate.gateway.asking.foreign_request import read_foreign
from radixgate.gateway.asking.large_bodies import read_large, read_large_object
from radixgate.proto.fields import decode_object
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import IdsPrompt, parse_completion

CHAT, RESPONSES = b"/v1/chat/completions", b"/v1/responses"
SHORT = {"role": "user", "content": "a"}
PART = {"type": "text", "text": "b"}
TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.fixture(autouse=True)
def all_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_bodies, "_LONG_BYTES", 60)
    monkeypatch.setattr(large_bodies, "_MOST_ITEMS", 5)


@pytest.mark.parametrize(
    ("path", "many", "five"),
    [
        pytest.param(CHAT, {"messages": [SHORT] * 9}, {"messages": [SHORT] * 5}, id="messages"),
        pytest.param(
            CHAT,
            {"messages": [{"role": "user", "content": [PART] * 9}]},
            {"messages": [{"role": "user", "content": [PART] * 9}]},
            id="parts-that-are-few-steps",
        ),
        pytest.param(
            CHAT,
            {"messages": [SHORT], "tools": [TOOL] * 9},
            {"messages": [SHORT], "tools": [TOOL] * 5},
            id="tools",
        ),
        pytest.param(RESPONSES, {"input": [SHORT] * 9}, {"input": [SHORT] * 5}, id="items"),
        pytest.param(
            b"/v1/embeddings", {"messages": [SHORT] * 9}, {"messages": [SHORT] * 5}, id="embedded"
        ),
        pytest.param(
            CHAT,
            {"messages": [SHORT], "user": [1] * 99, "cache_salt": {"a": [1] * 99}},
            {"messages": [SHORT], "user": [1], "cache_salt": {}},
            id="names-that-are-no-texts",
        ),
        pytest.param(
            CHAT,
            {"messages": [SHORT], "user": "u" * 99, "priority": 4, "lora_path": ["x"] * 99 + ["y"]},
            {"messages": [SHORT], "user": "u" * 99, "priority": 4, "lora_path": ["x", "y"]},
            id="what-is-asked-of-the-key-is-read-whole",
        ),
    ],
)
def test_it_is_read_as_one_with_fewer_items(path: bytes, many: object, five: object) -> None:
    for indent in (None, 1):
        written = json.dumps(many, indent=indent).encode()
        assert len(written) > 60
        fewer = json.dumps(five, indent=indent).encode()
        assert read_large(path, written).prompt == read_foreign(path, fewer).prompt
        assert _but_prompt(path, written) == _but_prompt(path, fewer)


def _but_prompt(path: bytes, body: bytes) -> tuple[object, ...]:
    read = read_large(path, body)
    return read.model, read.session, read.priority, read.salt


def test_one_message_of_too_many_parts_is_read_with_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_bodies, "first_items", _no_more_than(200))
    body = {"messages": [{"content": [PART] * 99, "role": "user"}]}
    assert read_large(CHAT, json.dumps(body).encode()).prompt == b"user\x1fbbbbb\x1e"


def _no_more_than(size: int) -> object:
    """Gives up at an item of that size, as if it had taken too many steps."""

    def first(written: bytes, most: int) -> bytes | None:
        items = json.loads(written)
        if len(json.dumps(items[0])) > size:
            return None
        return json.dumps(items[:most]).encode()

    return first


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param({"messages": [SHORT, 5] * 9}, "messages", id="no-message"),
        pytest.param({"messages": [SHORT] * 9, "top_p": 5}, "top_p", id="another-field"),
        pytest.param({"messages": "x" * 99}, "messages", id="no-array"),
    ],
)
def test_what_is_wrong_among_what_is_read_is_named(body: object, said: str) -> None:
    with pytest.raises(RequestError, match=said) as refused:
        read_large(CHAT, json.dumps(body).encode())
    with pytest.raises(RequestError) as at_once:
        read_foreign(CHAT, json.dumps(body).encode())
    assert refused.value.message == at_once.value.message


IDS = list(range(99))


def test_the_ids_of_our_own_workers_are_the_same() -> None:
    native = {"input_ids": IDS, "rid": "r", "sampling_params": {"max_new_tokens": 3}}
    read = read_large_object(json.dumps(native).encode())
    assert read == {**native, "input_ids": array("I", IDS)}
    assert parse_generate(read).prompts == parse_generate(native).prompts
    plain = {"prompt": [float(one) for one in IDS], "n": 2}
    read = read_large_object(json.dumps(plain).encode())
    assert parse_completion(read).prompts == (IdsPrompt(array("I", IDS)),)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"prompt": [IDS, IDS]}, id="arrays-of-ids"),
        pytest.param({"prompt": ["a" * 50, "b" * 50]}, id="texts"),
        pytest.param({"messages": [SHORT] * 9}, id="messages"),
        pytest.param({"prompt": "x" * 99}, id="text"),
    ],
)
def test_anything_else_is_read_as_ever(body: object) -> None:
    written = json.dumps(body).encode()
    assert read_large_object(written) == decode_object(written)


@pytest.mark.parametrize("written", [b"[1, 2]", b'{"a": ' + b"[" * 2_000, b'{"prompt": [1, '])
def test_what_is_no_object_is_refused_as_ever(written: bytes) -> None:
    with pytest.raises(RequestError) as at_once:
        decode_object(written)
    with pytest.raises(RequestError) as refused:
        read_large_object(written)
    assert refused.value.message == at_once.value.message
