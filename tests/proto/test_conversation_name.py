"""All turns of a conversation have one name, and no other conversation has it."""

import json

import msgspec
import pytest

from radixgate.proto.routing_text import (
    LONG_PART_BYTES,
    conversation_of,
    message_bytes,
    message_pieces,
    parts_bytes,
)

SYSTEM = {"role": "system", "content": "be brief"}


def said(*contents: str, system: bool = True) -> bytes:
    """A conversation of user and assistant in turn."""
    roles = ("user", "assistant") * len(contents)
    turns = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]
    return message_bytes([SYSTEM, *turns] if system else turns)


def test_later_turns_keep_the_name() -> None:
    name = conversation_of(said("one"))
    assert name is not None
    assert conversation_of(said("one", "two", "three")) == name


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(said("onE"), id="another-question"),
        pytest.param(said("one more"), id="a-longer-question"),
        pytest.param(said("one", system=False), id="another-system-prompt"),
    ],
)
def test_another_beginning_is_another_name(other: bytes) -> None:
    assert conversation_of(other) != conversation_of(said("one"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"once upon a time", id="plain-prompt"),
        pytest.param(b"", id="empty"),
        pytest.param(message_bytes([SYSTEM]), id="nobody-asked"),
    ],
)
def test_without_a_question_there_is_no_name(text: bytes) -> None:
    assert conversation_of(text) is None


def test_a_picture_is_told_by_a_hash_and_worth_a_thousand_tokens() -> None:
    def turn(url: str) -> bytes:
        part = {"type": "image_url", "image_url": {"url": url}}
        text = {"type": "text", "text": "what is it?"}
        return message_bytes([{"role": "user", "content": [part, text]}])

    large, other, small = (turn(url) for url in ("a" * 10**6, "a" * 10**6 + "b", "http://a"))
    assert large == turn("a" * 10**6)
    assert large != other
    assert len(large) == len(b"user\x1f") + LONG_PART_BYTES + len(b"what is it?\x1e")
    assert b"http://a" in small


@pytest.mark.parametrize(
    "part",
    [
        pytest.param({"type": "text", "text": "hi"}, id="text"),
        pytest.param({"type": "text", "text": "hi " * 3_000}, id="long-text"),
        pytest.param({"type": "text", "b": 1}, id="text-without-a-text"),
        pytest.param({"z": 1, "type": "image_url", "a": {"y": 1, "b": 2}}, id="short-picture"),
        pytest.param("bare", id="a-string"),
        pytest.param("bare " * 2_000, id="a-long-string"),
        pytest.param(5, id="a-number"),
    ],
)
def test_written_parts_are_worth_what_decoded_ones_are(part: object) -> None:
    written = msgspec.Raw(json.dumps(part).encode())
    assert message_bytes([{"role": "u", "content": [part]}]) == b"".join(
        message_pieces("u", parts_bytes([written]), b"")
    )


def test_a_long_part_that_is_no_text_is_told_by_its_bytes() -> None:
    def written(url: str) -> msgspec.Raw:
        return msgspec.Raw(json.dumps({"type": "image_url", "image_url": {"url": url}}).encode())

    one = parts_bytes([written("a" * 10_000)])
    assert (len(one), one) == (LONG_PART_BYTES, parts_bytes([written("a" * 10_000)]))
    assert one != parts_bytes([written("a" * 10_000 + "b")])


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "hé"},
        {"role": "user", "content": ""},
        {"role": "user", "content": "half a pair \ud83d"},
        {"role": "us\ud83der", "content": "hi"},
        {"role": "user", "content": None},
        {"role": "user", "name": "Eve"},
    ],
    ids=lambda message: str(message.values()),
)
def test_a_plain_message_is_written_as_any_other(message: dict[str, object]) -> None:
    rest = b'{"name":"Eve"}' if "name" in message else b""
    pieces = message_pieces(str(message["role"]), message.get("content"), rest)
    assert message_bytes([SYSTEM, message]) == message_bytes([SYSTEM]) + b"".join(pieces)
