"""Byte-level vocabularies made to order, so that a test decides how text falls into tokens."""

from collections.abc import Sequence
from typing import Any

import msgspec

from radixgate.text.bundle import TokenizerBundle
from radixgate.text.byte_level import bytes_to_token
from radixgate.text.tokenizer import Tokenizer

BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}


def tokenizer_of(*words: str, special: Sequence[str] = ("<|end|>",)) -> Tokenizer:
    """Token b is the byte b; each of `words` is one more token, and so are its beginnings.

    In a text the merges of an earlier word come first.
    """
    return Tokenizer.from_bundle(bundle_of(*words, special=special).pack())


def bundle_of(
    *words: str,
    special: Sequence[str] = ("<|end|>",),
    chat_template: str | None = None,
    bos_token: str | None = None,
) -> TokenizerBundle:
    """The first special token ends an answer."""
    document = tokenizer_document(words, special)
    return TokenizerBundle(
        tokenizer=msgspec.Raw(msgspec.json.encode(document)),
        chat_template=chat_template,
        bos_token=bos_token,
        eos_token_ids=[document["model"]["vocab"][token] for token in special[:1]],
    )


def tokenizer_document(words: Sequence[str], special: Sequence[str]) -> dict[str, Any]:
    """A tokenizer.json in which every word merges from the left."""
    vocabulary = {bytes_to_token(bytes([byte])): byte for byte in range(256)}
    merges: list[list[str]] = []
    for word in words:
        token = bytes_to_token(word.encode())
        for length in range(2, len(token) + 1):
            if token[:length] not in vocabulary:
                vocabulary[token[:length]] = len(vocabulary)
                merges.append([token[: length - 1], token[length - 1]])
    for token in special:
        vocabulary[token] = len(vocabulary)
    return {
        "version": "1.0",
        "added_tokens": [_added(token, vocabulary[token]) for token in special],
        "pre_tokenizer": BYTE_LEVEL,
        "decoder": BYTE_LEVEL,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    }


def _added(token: str, token_id: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token_id, "content": token, "special": True, **flags}
