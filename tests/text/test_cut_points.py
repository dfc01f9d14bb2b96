"""Where a text may be cut: the pieces, tokenized alone, give the ids of the whole."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from radixgate.text.cut_points import cut_points
from vocabularies import BYTE_LEVEL, tokenizer_document

SPECIAL = ("<a>", "<ab>", "b>")
DOCUMENT = tokenizer_document(["the", " the", "\u00e9"], SPECIAL)


def with_tokens(**flags: bool) -> dict[str, Any]:
    return DOCUMENT | {"added_tokens": [token | flags for token in DOCUMENT["added_tokens"]]}


def many_tokens(count: int) -> dict[str, Any]:
    return tokenizer_document([], [f"<|{n}|>" for n in range(count)])


SAFE = {
    "plain": DOCUMENT,
    "normalizer-sees-each-piece": DOCUMENT | {"normalizer": {"type": "NFC"}},
    "prefix-before-each-piece": DOCUMENT | {"normalizer": {"type": "Prepend", "prepend": "the"}},
}
PROVEN = {name: cut_points(msgspec.json.encode(document)) for name, document in SAFE.items()}


@pytest.mark.parametrize("name", SAFE)
@given(
    parts=st.lists(
        st.sampled_from([*SPECIAL, "the", " ", "e\u0301", "e", "\u0301", "<", "a", "b", ">"])
    )
)
def test_the_pieces_give_the_ids_of_the_whole(name: str, parts: list[str]) -> None:
    tokenizer = tokenizers.Tokenizer.from_str(msgspec.json.encode(SAFE[name]).decode())
    cuts = PROVEN[name]
    assert cuts is not None
    text = "".join(parts)
    bounds = [0, *(match.start() for match in cuts.finditer(text)), len(text)]
    pieces = [text[a:b] for a, b in pairwise(bounds) if a < b]
    assert [i for piece in pieces for i in tokenizer.encode(piece).ids] == tokenizer.encode(
        text
    ).ids


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(DOCUMENT | {"added_tokens": []}, id="no-tokens"),
        pytest.param(many_tokens(513), id="too-many-tokens"),
        pytest.param(with_tokens(lstrip=True), id="takes-space-before"),
        pytest.param(with_tokens(rstrip=True), id="takes-space-behind"),
        pytest.param(with_tokens(single_word=True), id="asks-for-word-borders"),
        pytest.param(with_tokens(normalized=True), id="searched-after-others"),
        pytest.param(
            DOCUMENT | {"pre_tokenizer": BYTE_LEVEL | {"add_prefix_space": True}}, id="prefix"
        ),
        pytest.param(
            DOCUMENT | {"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "first"}},
            id="first-piece-differs",
        ),
    ],
)
def test_without_a_proof_there_is_no_cut(document: dict[str, Any]) -> None:
    assert cut_points(msgspec.json.encode(document)) is None


def test_as_many_tokens_as_llama3_has_are_no_hindrance() -> None:
    assert cut_points(msgspec.json.encode(many_tokens(256))) is not None
