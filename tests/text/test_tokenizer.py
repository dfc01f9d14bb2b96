"""Ids to text and back on vocabularies made to order."""

from typing import Any

import msgspec
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from radixgate.errors import ModelError
from radixgate.text.bundle import TokenizerBundle
from radixgate.text.byte_level import BYTE_TO_CHARACTER, bytes_to_token, token_to_bytes
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.text.tokenizer import IN_A_ROW_CHARS, Tokenizer
from vocabularies import bundle_of, tokenizer_document, tokenizer_of

TOKENIZER = tokenizer_of("the", " the", "日本", special=("<|end|>", "<|start|>"))


def packed(change: dict[str, Any]) -> bytes:
    document = tokenizer_document(["the"], ["<|end|>"]) | change
    return TokenizerBundle(tokenizer=msgspec.Raw(msgspec.json.encode(document))).pack()


def test_every_byte_has_its_own_character() -> None:
    assert len(set(BYTE_TO_CHARACTER.values())) == 256
    assert all(token_to_bytes(text) == bytes([byte]) for byte, text in BYTE_TO_CHARACTER.items())


@given(st.binary(max_size=20))
def test_bytes_survive_the_printable_form(data: bytes) -> None:
    assert token_to_bytes(bytes_to_token(data)) == data


@pytest.mark.parametrize("token", ["a b", "日", "é x", "\u00ad"])
def test_an_entry_outside_the_map_is_its_own_utf8(token: str) -> None:
    assert token_to_bytes(token) == token.encode()


def comes_back(text: str) -> bool:
    return TOKENIZER.decode(TOKENIZER.encode(text), skip_special_tokens=False) == text


@given(st.lists(st.sampled_from(["the", " ", "\n", "7", "é", "日本", "\u200d😀", "<|end|>", "\0"])))
def test_every_text_comes_back(parts: list[str]) -> None:
    assert comes_back("".join(parts))


@pytest.mark.slow
@given(st.text(max_size=40))
def test_every_text_of_all_unicode_comes_back(text: str) -> None:
    assert comes_back(text)


@given(st.lists(st.integers(0, TOKENIZER.vocab_size - 1), max_size=30), st.booleans())
def test_decoding_by_bytes_is_what_the_library_decodes(ids: list[int], skip: bool) -> None:
    document = tokenizer_document(["the", " the", "日本"], ["<|end|>", "<|start|>"])
    library = tokenizers.Tokenizer.from_str(msgspec.json.encode(document).decode())
    assert TOKENIZER.decode(ids, skip) == library.decode(ids, skip_special_tokens=skip)


@pytest.mark.parametrize("times", [1, IN_A_ROW_CHARS], ids=["in-a-row", "spread"])
def test_a_batch_gives_what_single_calls_give(times: int) -> None:
    texts = ["the 日本" * times, "", "<|start|>the<|end|>"]
    assert TOKENIZER.encode_batch(texts) == [TOKENIZER.encode(text) for text in texts]
    assert all(ids.typecode == "I" for ids in TOKENIZER.encode_batch(texts))


def test_special_tokens_are_tokens_without_bytes() -> None:
    end, start = sorted(TOKENIZER.special_ids)
    assert TOKENIZER.encode("<|start|>a<|end|>").tolist() == [start, ord("a"), end]
    assert TOKENIZER.token_bytes(end) == b""
    assert (TOKENIZER.special_text(end), TOKENIZER.shown_bytes(end)) == ("<|end|>", b"<|end|>")
    assert TOKENIZER.special_text(ord("a")) == ""
    assert TOKENIZER.eos_token_ids == {end}


def test_an_added_token_that_is_not_special_is_text() -> None:
    added = tokenizer_document([], ["<é>"])
    added["added_tokens"][0]["special"] = False
    tokenizer = Tokenizer.from_bundle(packed(added))
    (token_id,) = tokenizer.encode("<é>")
    assert (tokenizer.token_bytes(token_id), tokenizer.special_ids) == ("<é>".encode(), frozenset())


@pytest.mark.parametrize("token_id", [-1, TOKENIZER.vocab_size, 2**31])
def test_an_id_that_is_no_token_stands_for_nothing(token_id: int) -> None:
    assert TOKENIZER.token_bytes(token_id) == b""
    assert TOKENIZER.decode([token_id, ord("a")]) == "a"


def test_a_prompt_is_never_cut_or_padded() -> None:
    cutting = {
        "truncation": {
            "direction": "Right",
            "max_length": 2,
            "strategy": "LongestFirst",
            "stride": 0,
        },
        "padding": {
            "strategy": {"Fixed": 9},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "!",
        },
    }
    tokenizer = Tokenizer.from_bundle(packed(cutting))
    assert tokenizer.encode("abc").tolist() == [*b"abc"]


def begin_with(token: str, token_id: int) -> dict[str, Any]:
    """A post-processor that puts a token before a text."""
    first = {"SpecialToken": {"id": token, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, text],
        "pair": [first, text],
        "special_tokens": {token: {"id": token, "ids": [token_id], "tokens": [token]}},
    }


def test_the_start_token_is_added_only_on_request() -> None:
    end = TOKENIZER.vocab_size - 2
    tokenizer = Tokenizer.from_bundle(packed({"post_processor": begin_with("<|end|>", end)}))
    assert tokenizer.encode("a").tolist() == [ord("a")]
    assert tokenizer.encode("a", add_special_tokens=True).tolist() == [end, ord("a")]


def test_the_hash_names_the_bundle() -> None:
    data = bundle_of("the").pack()
    assert Tokenizer.from_bundle(data).hash == Tokenizer.from_bundle(data).hash
    assert Tokenizer.from_bundle(data).hash != tokenizer_of("them").hash
    assert TokenizerBundle.unpack(data).pack() == data


@pytest.mark.parametrize(
    ("data", "named"),
    [
        pytest.param(b"{", "tokenizer bundle", id="no-json"),
        pytest.param(b"{}", "tokenizer", id="no-tokenizer"),
        pytest.param(packed({"decoder": {"type": "WordPiece"}}), "WordPiece", id="decoder"),
        pytest.param(packed({"decoder": None}), "decoder", id="no-decoder"),
        pytest.param(packed({"model": {"type": "Odd"}}), "tokenizer.json", id="model"),
    ],
)
def test_a_bundle_that_cannot_be_used_is_refused_by_name(data: bytes, named: str) -> None:
    with pytest.raises(ModelError, match=named):
        Tokenizer.from_bundle(data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a", "<|end|>a", id="put-before"),
        pytest.param("<|end|>a", "<|end|>a", id="not-twice"),
        pytest.param("", "<|end|>", id="empty"),
    ],
)
def test_a_prompt_in_plain_text_begins_with_the_start_token(text: str, expected: str) -> None:
    end = PromptEncoder(packed({})).encode_text("<|end|>")
    encoder = PromptEncoder(packed({"post_processor": begin_with("<|end|>", end[0])}))
    assert encoder.encode_text(text) == encoder.tokenizer.encode(expected)
    assert encoder.tokenizer.start_ids == end


def test_most_tokenizers_put_nothing_before_a_text() -> None:
    assert not TOKENIZER.start_ids
    assert PromptEncoder(packed({})).encode_text("the") == TOKENIZER.encode("the")
