"""The tokenizer and chat template in a GGUF file, as the bundle that gateways read."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from radixgate.errors import ModelError
from radixgate.text.bundle import TokenizerBundle
from radixgate.worker.weights.gguf.file import GgufFile
from radixgate.worker.weights.gguf.pre_tokenizers import GPT2_WORDS, PRE_TOKENIZERS, PreTokenizer
from radixgate.worker.weights.gguf.sentencepiece import sentencepiece_document

Json = dict[str, Any]

_UNKNOWN: Final = 2  # token types of GGUF
_CONTROL: Final = 3
_USER_DEFINED: Final = 4
_SPECIAL: Final = (_UNKNOWN, _CONTROL)

# Every key under which a file names a token that ends an answer.
_END_KEYS = (
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
)


def read_bundle(file: GgufFile) -> TokenizerBundle:
    """Raises ModelError that names the key which is missing or says something unknown."""
    tokens = file.need_list("tokenizer.ggml.tokens", str)
    if len(set(tokens)) != len(tokens):
        raise ModelError(f"{file.path}: tokenizer.ggml.tokens has the same token twice")
    kinds = file.need_list("tokenizer.ggml.token_type", int)
    if len(kinds) != len(tokens):
        raise ModelError(
            f"{file.path}: tokenizer.ggml.token_type has {len(kinds)} entries, "
            f"tokenizer.ggml.tokens has {len(tokens)}"
        )
    model = file.need("tokenizer.ggml.model", str)
    if model not in _MODELS:
        known = ", ".join(_MODELS)
        raise ModelError(
            f"{file.path}: tokenizer.ggml.model {model!r} is not supported, only {known}"
        )
    rules, parts = _MODELS[model](file, tokens, kinds)
    document = _frame(tokens, kinds) | parts
    bos = _token(file, tokens, "tokenizer.ggml.bos_token_id")
    add_bos = file.find("tokenizer.ggml.add_bos_token", bool)
    if bos is not None and (rules.add_bos if add_bos is None else add_bos):
        document["post_processor"] = _begin_with(bos, tokens.index(bos))
    return TokenizerBundle(
        tokenizer=msgspec.Raw(msgspec.json.encode(document)),
        chat_template=file.find("tokenizer.chat_template", str),
        bos_token=bos,
        eos_token=_token(file, tokens, "tokenizer.ggml.eos_token_id"),
        eos_token_ids=_ends(file, rules, tokens, kinds),
    )


def _frame(tokens: Sequence[str], kinds: Sequence[int]) -> Json:
    """A tokenizer.json but for the four parts that a model of vocabulary gives it."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(tokens, kinds),
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": None,
    }


def _byte_level(
    file: GgufFile, tokens: Sequence[str], kinds: Sequence[int]
) -> tuple[PreTokenizer, Json]:
    name = file.need("tokenizer.ggml.pre", str)
    if name not in PRE_TOKENIZERS:
        known = ", ".join(PRE_TOKENIZERS)
        raise ModelError(f"{file.path}: tokenizer.ggml.pre {name!r} is not supported, only {known}")
    rules = PRE_TOKENIZERS[name]
    return rules, {
        "normalizer": rules.normalizer,
        "pre_tokenizer": rules.document(),
        "decoder": GPT2_WORDS,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": rules.ignore_merges,
            "vocab": {token: token_id for token_id, token in enumerate(tokens)},
            "merges": _merges(file),
        },
    }


def _sentencepiece(
    file: GgufFile, tokens: Sequence[str], kinds: Sequence[int]
) -> tuple[PreTokenizer, Json]:
    return PreTokenizer(steps=(), add_bos=True), sentencepiece_document(file, tokens, kinds)


def _added_tokens(tokens: Sequence[str], kinds: Sequence[int]) -> list[Json]:
    return [
        {
            "id": token_id,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind in _SPECIAL,
        }
        for token_id, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind in (*_SPECIAL, _USER_DEFINED)
    ]


def _merges(file: GgufFile) -> list[list[str]]:
    merges = [merge.split(" ") for merge in file.need_list("tokenizer.ggml.merges", str)]
    for place, merge in enumerate(merges):
        if len(merge) != 2:
            raise ModelError(f"{file.path}: tokenizer.ggml.merges[{place}] is not two tokens")
    return merges


def _ends(
    file: GgufFile, rules: PreTokenizer, tokens: Sequence[str], kinds: Sequence[int]
) -> list[int]:
    """Chat models end a turn with a token that files often do not name; their family does."""
    named = [file.find(key, int) for key in _END_KEYS if _token(file, tokens, key) is not None]
    control = {
        token: token_id
        for token_id, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind == _CONTROL
    }
    known = [control[token] for token in rules.ends if token in control]
    return sorted({end for end in named if end is not None} | set(known))


def _begin_with(token: str, token_id: int) -> Json:
    first = {"SpecialToken": {"id": token, "type_id": 0}}
    text, other = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [first, text],
        "pair": [first, text, first, other],
        "special_tokens": {token: {"id": token, "ids": [token_id], "tokens": [token]}},
    }


def _token(file: GgufFile, tokens: Sequence[str], key: str) -> str | None:
    token_id = file.find(key, int)
    if token_id is None:
        return None
    if not 0 <= token_id < len(tokens):
        raise ModelError(f"{file.path}: {key} is {token_id}, there are {len(tokens)} tokens")
    return tokens[token_id]


# By tokenizer.ggml.model: byte-level BPE, and SentencePiece's BPE.
_MODELS: Final[
    dict[str, Callable[[GgufFile, Sequence[str], Sequence[int]], tuple[PreTokenizer, Json]]]
] = {"gpt2": _byte_level, "llama": _sentencepiece}
