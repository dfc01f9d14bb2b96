"""The tokenizer and chat template in a GGUF file, as the bundle that gateways read."""

from typing import Any, Final

import msgspec

from radixgate.errors import ModelError
from radixgate.text.bundle import TokenizerBundle
from radixgate.worker.gguf_file import GgufFile

_CONTROL: Final = 3  # token types of GGUF
_USER_DEFINED: Final = 4

_BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}

# How text is cut before merging, by `tokenizer.ggml.pre`, in the words of tokenizer.json.
PRE_TOKENIZERS: dict[str, dict[str, Any]] = {
    "smollm": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL],
    },
    "gpt-2": _BYTE_LEVEL,
}

# Every key under which a file names a token that ends an answer.
_END_KEYS = (
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
)


def read_bundle(file: GgufFile) -> TokenizerBundle:
    """Raises ModelError that names the key which is missing or says something unknown."""
    model = file.need("tokenizer.ggml.model", str)
    if model != "gpt2":
        raise ModelError(
            f"{file.path}: tokenizer.ggml.model {model!r} is not supported, only 'gpt2' "
            "(byte-level BPE)"
        )
    tokens = file.need_list("tokenizer.ggml.tokens", str)
    bos = _token(file, tokens, "tokenizer.ggml.bos_token_id")
    eos = _token(file, tokens, "tokenizer.ggml.eos_token_id")
    ends = [file.find(key, int) for key in _END_KEYS if _token(file, tokens, key) is not None]
    return TokenizerBundle(
        tokenizer=msgspec.Raw(msgspec.json.encode(_document(file, tokens, bos))),
        chat_template=file.find("tokenizer.chat_template", str),
        bos_token=bos,
        eos_token=eos,
        eos_token_ids=sorted({end for end in ends if end is not None}),
    )


def _document(file: GgufFile, tokens: list[str], bos: str | None) -> dict[str, Any]:
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        raise ModelError(f"{file.path}: tokenizer.ggml.tokens has the same token twice")
    add_bos = file.find("tokenizer.ggml.add_bos_token", bool)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(file, tokens),
        "normalizer": None,
        "pre_tokenizer": _pre_tokenizer(file),
        "post_processor": _begin_with(bos, vocabulary[bos]) if add_bos and bos else None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": _merges(file),
        },
    }


def _pre_tokenizer(file: GgufFile) -> dict[str, Any]:
    name = file.need("tokenizer.ggml.pre", str)
    if name not in PRE_TOKENIZERS:
        known = ", ".join(PRE_TOKENIZERS)
        raise ModelError(f"{file.path}: tokenizer.ggml.pre {name!r} is not supported, only {known}")
    return PRE_TOKENIZERS[name]


def _added_tokens(file: GgufFile, tokens: list[str]) -> list[dict[str, Any]]:
    kinds = file.need_list("tokenizer.ggml.token_type", int)
    if len(kinds) != len(tokens):
        raise ModelError(
            f"{file.path}: tokenizer.ggml.token_type has {len(kinds)} entries, "
            f"tokenizer.ggml.tokens has {len(tokens)}"
        )
    return [
        {
            "id": token_id,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind == _CONTROL,
        }
        for token_id, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind in (_CONTROL, _USER_DEFINED)
    ]


def _merges(file: GgufFile) -> list[list[str]]:
    merges = [merge.split(" ") for merge in file.need_list("tokenizer.ggml.merges", str)]
    for place, merge in enumerate(merges):
        if len(merge) != 2:
            raise ModelError(f"{file.path}: tokenizer.ggml.merges[{place}] is not two tokens")
    return merges


def _begin_with(token: str, token_id: int) -> dict[str, Any]:
    first = {"SpecialToken": {"id": token, "type_id": 0}}
    text, other = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [first, text],
        "pair": [first, text, first, other],
        "special_tokens": {token: {"id": token, "ids": [token_id], "tokens": [token]}},
    }


def _token(file: GgufFile, tokens: list[str], key: str) -> str | None:
    token_id = file.find(key, int)
    if token_id is None:
        return None
    if not 0 <= token_id < len(tokens):
        raise ModelError(f"{file.path}: {key} is {token_id}, there are {len(tokens)} tokens")
    return tokens[token_id]
