"""SentencePiece's BPE as plainly as it can be written: a vocabulary with scores, and its rule."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

SPACE = "\u2581"
CONTROL = ("<unk>", "<s>", "</s>")
# Token types of GGUF.
UNKNOWN, NORMAL, CONTROLS, BYTE = 2, 1, 3, 6


class SentencePieces:
    """Tokens, token types and scores, in the order in which a GGUF file of Llama 2 has them."""

    def __init__(self, corpus: Iterable[str], merges: int) -> None:
        words = Counter(word for text in corpus for word in (SPACE + text.replace(" ", SPACE),))
        learned = _learned([(list(word), count) for word, count in words.items()], merges)
        letters = sorted({letter for word in words for letter in word})
        self.tokens = [*CONTROL, *(f"<0x{byte:02X}>" for byte in range(256)), *learned, *letters]
        plain = len(self.tokens) - len(CONTROL) - 256
        self.kinds = [UNKNOWN, CONTROLS, CONTROLS] + [BYTE] * 256 + [NORMAL] * plain
        self.scores = [0.0] * (len(CONTROL) + 256) + [-float(place) for place in range(plain)]
        self._scores = dict(zip(self.tokens, self.scores, strict=True))
        self._ids = {token: place for place, token in enumerate(self.tokens)}

    def encode(self, text: str) -> list[int]:
        """Join the neighbours whose join scores best, the leftmost first, while any can be."""
        parts = list((SPACE + text).replace(" ", SPACE)) if text else []
        while joins := [
            (-self._scores[a + b], place)
            for place, (a, b) in enumerate(pairwise(parts))
            if a + b in self._scores
        ]:
            _, place = min(joins)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return [token_id for part in parts for token_id in self._as_ids(part)]

    def metadata(self) -> dict[str, object]:
        """What a GGUF file says of it."""
        return {
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.pre": "default",
            "tokenizer.ggml.tokens": self.tokens,
            "tokenizer.ggml.token_type": self.kinds,
            "tokenizer.ggml.scores": self.scores,
            "tokenizer.ggml.merges": None,
            "tokenizer.ggml.unknown_token_id": 0,
            "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2,
        }

    def _as_ids(self, part: str) -> list[int]:
        if part in self._ids:
            return [self._ids[part]]
        return [len(CONTROL) + byte for byte in part.encode()]


def _learned(words: Sequence[tuple[list[str], int]], merges: int) -> list[str]:
    """The most frequent pair again and again: how such a vocabulary is trained."""
    learned: list[str] = []
    for _ in range(merges):
        pairs = Counter[tuple[str, str]]()
        for parts, count in words:
            for pair in pairwise(parts):
                pairs[pair] += count
        if not pairs:
            break
        (best, _) = max(pairs.items(), key=lambda item: (item[1], item[0]))
        if "".join(best) not in learned:
            learned.append("".join(best))
        for parts, _ in words:
            for place in range(len(parts) - 2, -1, -1):
                if tuple(parts[place : place + 2]) == best:
                    parts[place : place + 2] = ["".join(best)]
    return learned
