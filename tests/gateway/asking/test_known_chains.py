"""A prompt's ids are those of the rule, whether its beginning is known or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.gateway.asking import known_chains
from radixgate.gateway.asking.known_chains import (
    SEGMENT_BYTES,
    KnownChains,
    conversation_by_ids,
    fingerprint_by_ids,
)
from radixgate.proto.blocks import byte_chain, root_id
from radixgate.proto.routing_text import message_bytes

ROOT = root_id("toy")
TEXT = bytes(range(256)) * 400


@given(lengths=st.lists(st.integers(0, len(TEXT)), min_size=1, max_size=6))
def test_ids_are_those_of_the_rule_however_often_the_beginning_came(lengths: list[int]) -> None:
    chains = KnownChains()
    for length in lengths:
        assert chains.chain(ROOT, TEXT[:length]) == byte_chain(ROOT, TEXT[:length])


def test_equal_text_under_another_root_has_other_ids() -> None:
    chains = KnownChains()
    chains.chain(ROOT, TEXT)
    other = root_id("toy", None, "salt")
    assert chains.chain(other, TEXT) == byte_chain(other, TEXT)


def test_a_difference_in_the_first_segment_changes_all_ids() -> None:
    chains = KnownChains()
    ids = chains.chain(ROOT, TEXT)
    changed = b"x" + TEXT[1:]
    assert not set(chains.chain(ROOT, changed)) & set(ids)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_chains, "MAX_SEGMENTS", 2)
    chains = KnownChains()
    for number in range(5):
        text = bytes([number]) * (2 * SEGMENT_BYTES)
        assert chains.chain(ROOT, text) == byte_chain(ROOT, text)
        assert len(chains._known) <= 2


def _turns(*texts: str) -> bytes:
    roles = ("user", "assistant")
    return message_bytes(
        [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    )


@pytest.mark.parametrize("length", [10, 256, 5_000, 16_384, 40_000])
def test_a_conversation_keeps_its_name_through_its_turns(length: int) -> None:
    chains = KnownChains()
    texts = [_turns("x" * length), _turns("x" * length, "yes", "and then?" * 900)]
    names = {conversation_by_ids(ROOT, chains.chain(ROOT, text), text) for text in texts}
    assert len(names) == 1
    other = _turns("x" * length + "y")
    assert conversation_by_ids(ROOT, chains.chain(ROOT, other), other) not in names
    assert conversation_by_ids(8, chains.chain(8, texts[0]), texts[0]) not in names


def test_a_prompt_without_messages_names_no_conversation() -> None:
    assert conversation_by_ids(ROOT, KnownChains().chain(ROOT, TEXT), TEXT) is None


@pytest.mark.parametrize("length", [10, 256, 300, 17_000])
def test_a_fingerprint_tells_texts_apart_by_any_byte(length: int) -> None:
    text = b"x" * length
    texts = (text, text[1:] + b"y", b"y" + text[1:], text + b"x")
    found = [fingerprint_by_ids(ROOT, byte_chain(ROOT, one), one) for one in texts]
    assert len(set(found)) == len(texts)
