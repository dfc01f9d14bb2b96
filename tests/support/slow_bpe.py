"""Byte-level BPE as plainly as it can be written, to check the fast one against."""

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

from radixgate.text.byte_level import bytes_to_token

# White_Space of Unicode; str.isspace also takes the four separators U+001C to U+001F.
SPACES = frozenset(
    map(chr, [*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029])
) | frozenset("\u202f\u205f\u3000")
CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")


class SlowBpe:
    """Digits one by one, then GPT-2's words, then merges by rank: SmolLM2's rules."""

    def __init__(
        self, tokens: Sequence[str], merges: Sequence[str], special: Sequence[str]
    ) -> None:
        self._ids = {token: token_id for token_id, token in enumerate(tokens)}
        self._ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        self._special = sorted(special, key=len, reverse=True)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        start = 0
        while start < len(text):
            token = next((t for t in self._special if text.startswith(t, start)), None)
            if token is not None:
                ids.append(self._ids[token])
                start += len(token)
                continue
            ends = [text.find(t, start) for t in self._special]
            end = min((e for e in ends if e >= 0), default=len(text))
            ids += self._plain(text[start:end])
            start = end
        return ids

    def _plain(self, text: str) -> list[int]:
        merged = [self._merge(word) for piece in by_digits(text) for word in words(piece)]
        # A byte that the vocabulary lacks is dropped.
        return [self._ids[part] for parts in merged for part in parts if part in self._ids]

    def _merge(self, word: str) -> list[str]:
        parts = [c for c in bytes_to_token(word.encode()) if c in self._ids]
        while len(parts) > 1:
            pairs = list(pairwise(parts))
            best = min(pairs, key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            at = pairs.index(best)
            parts[at : at + 2] = ["".join(best)]
        return parts


def by_digits(text: str) -> Iterator[str]:
    """Every numeric character alone, and what lies between them."""
    start = 0
    for place, character in enumerate(text):
        if kind(character) == "N":
            yield from filter(None, (text[start:place], character))
            start = place + 1
    if text[start:]:
        yield text[start:]


def words(text: str) -> Iterator[str]:
    """GPT-2's pattern by hand: 's|'t|..| ?letters| ?numbers| ?others|spaces(?!word)|spaces."""
    start = 0
    while start < len(text):
        end = _word_end(text, start)
        yield text[start:end]
        start = end


def _word_end(text: str, start: int) -> int:
    for ending in CONTRACTIONS:
        if text.startswith(ending, start):
            return start + len(ending)
    first = start + 1 if text[start] == " " and start + 1 < len(text) else start
    wanted = kind(text[first])
    if wanted != "S":
        return _run(text, first, wanted)
    end = _run(text, start, "S")
    # The last space before a word belongs to the word (or stands alone).
    return end - 1 if end < len(text) and end - start > 1 else end


def _run(text: str, start: int, wanted: str) -> int:
    while start < len(text) and kind(text[start]) == wanted:
        start += 1
    return start


def kind(character: str) -> str:
    """S, L, N or O: space, letter, number, other."""
    if character in SPACES:
        return "S"
    major = unicodedata.category(character)[0]
    return major if major in "LN" else "O"
