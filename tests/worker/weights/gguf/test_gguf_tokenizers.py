"""Each vocabulary family of GGUF files is cut, merged, begun and ended by its own rules."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import msgspec
import pytest
import tokenizers

from radixgate.errors import ModelError
from radixgate.text.bundle import TokenizerBundle
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.weights.gguf.file import GgufFile
from radixgate.worker.weights.gguf.pre_tokenizers import PRE_TOKENIZERS
from radixgate.worker.weights.gguf.tokenizer import read_bundle
from sentencepieces import SentencePieces
from varied_texts import varied_texts
from vocabularies import tokenizer_document

TURN = "I'LL say 12345 it's  10%!\n\n  done"
CUT = {
    "gpt-2": "I|'|LL| say| 12345| it|'s| | 10|%!|\n\n | done",
    "smollm": "I|'|LL| say| |1|2|3|4|5| it|'s|  |1|0|%!|\n\n | done",
    "llama-bpe": "I|'LL| say| |123|45| it|'s| | |10|%!\n\n| | done",
    "qwen2": "I|'LL| say| |1|2|3|4|5| it|'s| | |1|0|%!\n\n| | done",
    "default": "I|'|LL| say| |123|45| it|'|s| | |10|%!|\n\n | done",
}


def write(path: Path, metadata: Mapping[str, object]) -> Path:
    """A GGUF file without tensors."""
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in metadata.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        elif value is not None:
            writer.add_array(key, list(value))  # type: ignore[call-overload]
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def bundle_of(path: Path, metadata: Mapping[str, object]) -> TokenizerBundle:
    with GgufFile(write(path, metadata)) as file:
        return read_bundle(file)


def byte_level(pre: str, words: list[str], special: list[str], **keys: object) -> dict[str, object]:
    """Metadata of a vocabulary of all bytes and these words."""
    document = tokenizer_document(words, special)
    tokens = list(document["model"]["vocab"])
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token in special else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(merge) for merge in document["model"]["merges"]],
    } | {f"tokenizer.ggml.{key}": value for key, value in keys.items()}


def pieces(pre: str, text: str) -> list[str]:
    document = tokenizer_document([], []) | {"pre_tokenizer": PRE_TOKENIZERS[pre].document()}
    library = tokenizers.Tokenizer.from_str(msgspec.json.encode(document).decode())
    assert library.pre_tokenizer is not None
    return [text[a:b] for _, (a, b) in library.pre_tokenizer.pre_tokenize_str(text)]


@pytest.mark.parametrize("pre", CUT)
def test_a_text_is_cut_as_its_family_cuts(pre: str) -> None:
    assert "|".join(pieces(pre, TURN)) == CUT[pre]


@pytest.mark.parametrize(
    ("alias", "pre"),
    [("llama3", "llama-bpe"), ("llama-v3", "llama-bpe"), ("deepseek-r1-qwen", "qwen2")],
)
def test_some_families_go_by_several_names(alias: str, pre: str) -> None:
    assert PRE_TOKENIZERS[alias] == PRE_TOKENIZERS[pre]


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
def test_every_text_comes_back_as_its_family_normalizes_it(tmp_path: Path, pre: str) -> None:
    bundle = bundle_of(tmp_path / "m.gguf", byte_level(pre, ["the", " the", "12"], ["<|im_end|>"]))
    tokenizer = Tokenizer.from_bundle(bundle.pack())
    library = tokenizers.Tokenizer.from_buffer(bytes(bundle.tokenizer))
    for text in varied_texts():
        normal = library.normalizer.normalize_str(text) if library.normalizer else text
        assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=False) == normal


def test_only_qwen_composes_its_letters(tmp_path: Path) -> None:
    def letters(pre: str) -> int:
        bundle = bundle_of(tmp_path / f"{pre}.gguf", byte_level(pre, ["\u00e9"], []))
        return len(Tokenizer.from_bundle(bundle.pack()).encode("e\u0301"))

    assert [letters(pre) for pre in ("qwen2", "llama-bpe", "smollm")] == [1, 3, 3]


@pytest.mark.parametrize(("pre", "ids"), [("llama-bpe", 1), ("qwen2", 2)])
def test_llama3_takes_a_word_that_is_a_token_whole(tmp_path: Path, pre: str, ids: int) -> None:
    metadata = byte_level(pre, ["ab", "abc"], [])
    metadata["tokenizer.ggml.merges"] = ["b c"]  # leads away from "abc"
    metadata["tokenizer.ggml.tokens"] = [
        *tokenizer_document(["ab", "abc"], [])["model"]["vocab"],
        "bc",
    ]
    metadata["tokenizer.ggml.token_type"] = [1] * 259
    tokenizer = Tokenizer.from_bundle(bundle_of(tmp_path / "m.gguf", metadata).pack())
    assert len(tokenizer.encode("abc")) == ids


@pytest.mark.parametrize(
    ("pre", "said", "begins"),
    [
        ("llama-bpe", None, True),
        ("llama-bpe", False, False),
        ("qwen2", None, False),
        ("qwen2", True, True),
    ],
)
def test_llama3_begins_with_its_start_token_unless_the_file_says_otherwise(
    tmp_path: Path, pre: str, said: bool | None, begins: bool
) -> None:
    metadata = byte_level(pre, ["no"], ["<|start|>"], bos_token_id=257, add_bos_token=said)
    tokenizer = Tokenizer.from_bundle(bundle_of(tmp_path / "m.gguf", metadata).pack())
    assert tokenizer.start_ids.tolist() == [257] * begins


@pytest.mark.parametrize(
    ("pre", "ends"),
    [
        ("llama-bpe", {"<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"}),
        ("qwen2", {"<|end_of_text|>", "<|im_end|>", "<|endoftext|>"}),
        ("smollm", {"<|end_of_text|>"}),
    ],
)
def test_all_that_ends_an_answer_is_known_though_a_file_names_one(
    tmp_path: Path, pre: str, ends: set[str]
) -> None:
    special = ["<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|endoftext|>"]
    bundle = bundle_of(tmp_path / "m.gguf", byte_level(pre, ["no"], special, eos_token_id=257))
    tokenizer = Tokenizer.from_bundle(bundle.pack())
    assert {tokenizer.special_text(end) for end in tokenizer.eos_token_ids} == ends


@cache
def sentencepieces() -> SentencePieces:
    return SentencePieces(varied_texts(), merges=150)


def sentencepiece_tokenizer(path: Path, **keys: object) -> Tokenizer:
    metadata = sentencepieces().metadata() | {f"tokenizer.ggml.{k}": v for k, v in keys.items()}
    return Tokenizer.from_bundle(bundle_of(path, metadata).pack())


@pytest.mark.slow
def test_sentencepieces_join_by_score(tmp_path: Path) -> None:
    tokenizer, plain = sentencepiece_tokenizer(tmp_path / "m.gguf"), sentencepieces()
    for text in [*varied_texts(), "Unseen: жΩ\x00 words, the 日 and\tthe rest"]:
        if "<" not in text:  # no special tokens, which are another matter
            assert tokenizer.encode(text).tolist() == plain.encode(text), text


@pytest.mark.slow
def test_sentencepieces_begin_end_and_come_back(tmp_path: Path) -> None:
    tokenizer = sentencepiece_tokenizer(tmp_path / "m.gguf")
    assert tokenizer.start_ids.tolist() == [1]
    assert tokenizer.eos_token_ids == {2}
    assert tokenizer.special_ids == {0, 1, 2}
    for text in varied_texts():
        assert tokenizer.decode(tokenizer.encode(text)) == (f" {text}" if text else "")
    bare = sentencepiece_tokenizer(
        tmp_path / "bare.gguf", add_bos_token=False, add_space_prefix=False
    )
    assert not bare.start_ids
    assert bare.decode(bare.encode("the day")) == "the day"


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"scores": [0.0]}, "scores has 1 entries"),
        ({"scores": None}, "scores is missing"),
        ({"token_type": [2] * 600}, "token_type has 600 entries"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_named(
    tmp_path: Path, keys: dict[str, Any], named: str
) -> None:
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "a"],
        "tokenizer.ggml.token_type": [2, 1],
        "tokenizer.ggml.scores": [0.0, 0.0],
    }
    with pytest.raises(ModelError, match=named):
        bundle_of(
            tmp_path / "m.gguf", metadata | {f"tokenizer.ggml.{k}": v for k, v in keys.items()}
        )
