"""Bytes of a vocabulary entry, and which decoders are known."""

from typing import Any

import msgspec
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from radixgate.errors import ModelError
from radixgate.text.bundle import TokenizerBundle
from radixgate.text.decoders import bytes_of_token
from radixgate.text.detokenizer import Detokenizer
from radixgate.text.tokenizer import Tokenizer

REPLACE = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
FALLBACK = {"type": "ByteFallback"}
FUSE = {"type": "Fuse"}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}

PIECES = [
    "<unk>",
    "<s>",
    *(f"<0x{byte:02X}>" for byte in range(256)),
    *["\u2581", "a", "b", "é", "ab", "\u2581a", "日"],
]


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "decoders": list(steps)}


LLAMA = sequence(REPLACE, FALLBACK, FUSE, STRIP)
DOCUMENT = {
    "version": "1.0",
    "added_tokens": [
        {"id": place, "content": token, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for place, token in enumerate(PIECES[:2])
    ],
    "normalizer": {
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        ],
    },
    "decoder": LLAMA,
    "model": {
        "type": "BPE",
        "vocab": {piece: place for place, piece in enumerate(PIECES)},
        "merges": [["a", "b"], ["\u2581", "a"]],
        "unk_token": "<unk>",
        "fuse_unk": True,
        "byte_fallback": True,
    },
}
TOKENIZER = Tokenizer.from_bundle(
    TokenizerBundle(tokenizer=msgspec.Raw(msgspec.json.encode(DOCUMENT))).pack()
)


@pytest.mark.parametrize(
    ("decoder", "token", "expected"),
    [
        pytest.param({"type": "ByteLevel"}, "Ġa", b" a", id="byte-level"),
        pytest.param(sequence({"type": "ByteLevel"}), "Ġa", b" a", id="byte-level-in-sequence"),
        pytest.param(
            sequence(REPLACE, FALLBACK, FUSE, STRIP), "\u2581é", " é".encode(), id="llama"
        ),
        pytest.param(sequence(REPLACE, FALLBACK, FUSE, STRIP), "<0x0A>", b"\n", id="llama-byte"),
        pytest.param(sequence(FALLBACK, METASPACE), "<0xE9>", b"\xe9", id="metaspace-byte"),
        pytest.param(METASPACE, "\u2581a", b" a", id="metaspace"),
        pytest.param(METASPACE, "<0x0A>", b"<0x0A>", id="no-fallback-no-byte"),
        pytest.param(sequence(REPLACE, FALLBACK), "<0x0a>", b"<0x0a>", id="not-how-bytes-look"),
        pytest.param(sequence(sequence(REPLACE), FUSE), "\u2581", b" ", id="nested"),
    ],
)
def test_what_an_entry_stands_for(decoder: dict[str, Any], token: str, expected: bytes) -> None:
    assert bytes_of_token(decoder)(token) == expected


@pytest.mark.parametrize(
    ("decoder", "named"),
    [
        (None, "'None'"),
        ({"type": "WordPiece"}, "'WordPiece'"),
        (sequence(FALLBACK, FUSE), r"'ByteFallback \+ Fuse'"),
        (sequence({"type": "ByteLevel"}, FUSE), r"'ByteLevel \+ Fuse'"),
        (sequence(REPLACE | {"content": "_"}, FALLBACK), r"'Replace \+ ByteFallback'"),
        (METASPACE | {"replacement": "_"}, "'Metaspace'"),
    ],
)
def test_an_unknown_decoder_is_named(decoder: dict[str, Any] | None, named: str) -> None:
    with pytest.raises(ModelError, match=f"decoder {named} is not supported"):
        bytes_of_token(decoder)


@given(st.text(st.sampled_from("ab é日x😀\n\u2581"), max_size=12))
def test_a_text_comes_back_behind_the_space_that_starts_it(text: str) -> None:
    ids = TOKENIZER.encode(text)
    shown = text.replace("\u2581", " ")
    assert TOKENIZER.decode(ids) == (" " + shown if text else "")
    detokenizer = Detokenizer(TOKENIZER, True)
    assert "".join(map(detokenizer.push, ids)) == (" " + shown if text else "")


@given(st.text(st.sampled_from("ab é日x\n"), min_size=1, max_size=12))
def test_the_library_decodes_the_same_but_for_that_space(text: str) -> None:
    library = tokenizers.Tokenizer.from_str(msgspec.json.encode(DOCUMENT).decode())
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids).removeprefix(" ") == library.decode(list(ids)) == text
