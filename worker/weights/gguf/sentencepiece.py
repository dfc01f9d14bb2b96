"""A SentencePiece vocabulary of a GGUF file (`tokenizer.ggml.model` "llama") as a BPE model.

Such a file has a score for each piece and no merges: at any time the two neighbours are joined
whose join has the best score. Merges in the order of that score do the same.
"""

from collections.abc import Sequence
from typing import Any, Final

from radixgate.errors import ModelError
from radixgate.worker.weights.gguf.file import GgufFile

Json = dict[str, Any]

_NORMAL: Final = 1  # token types of GGUF
_UNKNOWN: Final = 2
_SPACE: Final = "\u2581"


def sentencepiece_document(file: GgufFile, tokens: Sequence[str], kinds: Sequence[int]) -> Json:
    """All of a tokenizer.json but its added tokens and what stands before a text.

    Runs of one repeated character may fall apart otherwise than in SentencePiece, where two of
    their splits have the same score; Hugging Face's own conversion has it so too.
    """
    if kinds.count(_UNKNOWN) > 1:
        raise ModelError(f"{file.path}: tokenizer.ggml.token_type has several unknown tokens")
    unknown = tokens[kinds.index(_UNKNOWN)] if _UNKNOWN in kinds else None
    scores = file.need_list("tokenizer.ggml.scores", float)
    if len(scores) != len(tokens):
        raise ModelError(
            f"{file.path}: tokenizer.ggml.scores has {len(scores)} entries, "
            f"tokenizer.ggml.tokens has {len(tokens)}"
        )
    pieces = [
        (token, score)
        for token, score, kind in zip(tokens, scores, kinds, strict=True)
        if kind == _NORMAL
    ]
    prefix = file.find("tokenizer.ggml.add_space_prefix", bool)
    return {
        "normalizer": _spaces_as_pieces(prefix is None or prefix),
        "pre_tokenizer": None,
        "decoder": _DECODER,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": unknown,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {token: token_id for token_id, token in enumerate(tokens)},
            "merges": merges_of(dict(pieces)),
        },
    }


def merges_of(scores: dict[str, float]) -> list[list[str]]:
    """Every way to join two pieces to a third, best score first. O(characters of all pieces)."""
    merges = [
        (score, cut, len(piece) - cut, piece)
        for piece, score in scores.items()
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
    merges.sort(key=lambda merge: merge[:3], reverse=True)
    return [[piece[:cut], piece[cut:]] for _, cut, _, piece in merges]


def _spaces_as_pieces(prefix: bool) -> Json:
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    first = [{"type": "Prepend", "prepend": _SPACE}] if prefix else []
    return {"type": "Sequence", "normalizers": [*first, spaces]}


_DECODER: Final[Json] = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}
