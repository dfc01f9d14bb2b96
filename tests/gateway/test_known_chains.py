"""A prompt's ids are those of the rule, whether its beginning is known or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.gateway import known_chains
from radixgate.gateway.known_chains import SEGMENT_BYTES, KnownChains
from radixgate.proto.blocks import byte_chain, root_id

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
