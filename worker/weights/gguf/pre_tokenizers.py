"""How text is cut before merging, by the name a GGUF file gives it in `tokenizer.ggml.pre`."""

from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

# GPT-2's own pattern is built into this step; its other half writes bytes as characters.
GPT2_WORDS: Final[Json] = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
_BYTES_ONLY: Final[Json] = GPT2_WORDS | {"use_regex": False}

_CONTRACTIONS: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_AFTER_NUMBERS: Final = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """One vocabulary family's rules, in the words of tokenizer.json."""

    steps: tuple[Json, ...]
    normalizer: Json | None = None
    # A word that is a token is taken whole, whatever the merges would make of it.
    ignore_merges: bool = False
    add_bos: bool = False  # where the file does not say
    # Tokens that end an answer beside those that the file names, where the vocabulary has them.
    ends: tuple[str, ...] = ()

    def document(self) -> Json:
        """The `pre_tokenizer` of a tokenizer.json."""
        if len(self.steps) == 1:
            return self.steps[0]
        return {"type": "Sequence", "pretokenizers": list(self.steps)}


def _cut(pattern: str) -> Json:
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }


def _words(numbers: str) -> str:
    """The pattern that Llama 3 and Qwen share but for how many digits go together."""
    return rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{numbers}|{_AFTER_NUMBERS}"


_LLAMA3: Final = PreTokenizer(
    steps=(_cut(_words(r"\p{N}{1,3}")), _BYTES_ONLY),
    ignore_merges=True,
    add_bos=True,
    ends=("<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"),
)
_QWEN2: Final = PreTokenizer(
    steps=(_cut(_words(r"\p{N}")), _BYTES_ONLY),
    normalizer={"type": "NFC"},
    ends=("<|im_end|>", "<|endoftext|>"),
)

PRE_TOKENIZERS: Final = {
    "gpt-2": PreTokenizer(steps=(GPT2_WORDS,)),
    "smollm": PreTokenizer(steps=({"type": "Digits", "individual_digits": True}, GPT2_WORDS)),
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    # What llama.cpp does for a vocabulary it does not recognise.
    "default": PreTokenizer(
        steps=(
            _cut(r"[\p{P}\$\+<=>\^~\|]+"),
            _cut(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"),
            _cut(r"\p{N}+"),
            _cut(r"[0-9][0-9][0-9]"),
            _BYTES_ONLY,
        )
    ),
}
