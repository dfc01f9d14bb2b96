"""All turns of a conversation have one name, and no other conversation has it."""

import pytest

from radixgate.proto.routing_text import conversation_of, message_bytes

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
