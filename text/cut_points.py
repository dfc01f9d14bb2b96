"""Where a text may be cut so that the pieces, tokenized alone, give the same ids as the whole."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

# A longer alternation costs more to search than it saves. (Llama 3 has 256 added tokens; 4 µs a
# match, where tokenizing a message takes a hundred times that.)
_MOST_TOKENS = 512


class _AddedToken(msgspec.Struct):
    content: str
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = True  # searched for in the normalized text, after those that are not
    single_word: bool = False


class _Document(msgspec.Struct):
    """What decides about cutting in a tokenizer.json."""

    added_tokens: list[_AddedToken] = []
    pre_tokenizer: dict[str, Any] | None = None


def cut_points(tokenizer_json: bytes | msgspec.Raw) -> re.Pattern[str] | None:
    """Matches the added tokens of a tokenizer at which a text may be cut; None if none is proven.

    `tokenizers` splits a text at its added tokens before anything else (at those that are not
    `normalized` first of all, in the text as it came) and treats each piece alone, normalizer
    included. So a cut at the start of one changes nothing, as long as no added token takes white
    space from its neighbours or asks for word borders, and no pre-tokenizer tells the first piece
    from the others.
    """
    document = msgspec.json.decode(tokenizer_json, type=_Document)
    if any(token.lstrip or token.rstrip or token.single_word for token in document.added_tokens):
        return None
    if document.pre_tokenizer is not None and _adds_a_prefix(document.pre_tokenizer):
        return None
    tokens = [token for token in document.added_tokens if not token.normalized]
    if not 0 < len(tokens) <= _MOST_TOKENS:
        return None
    # Longest first: where one token begins with another, the tokenizer takes the longer one.
    contents = sorted((token.content for token in tokens), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, contents)))


def _adds_a_prefix(step: Mapping[str, Any]) -> bool:
    """Unknown kinds count as if they did: a proof is asked for."""
    kind = step.get("type")
    if kind == "Sequence":
        return any(map(_adds_a_prefix, step["pretokenizers"]))
    if kind == "ByteLevel":
        return bool(step.get("add_prefix_space", True))
    return kind not in ("Digits", "Split", "Whitespace", "WhitespaceSplit", "Punctuation")
