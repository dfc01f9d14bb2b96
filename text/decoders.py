"""What bytes a vocabulary entry stands for, by the decoder that its tokenizer.json names."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from radixgate.errors import ModelError
from radixgate.text.byte_level import token_to_bytes

BytesOfToken = Callable[[str], bytes]

_SPACE: Final = "\u2581"  # how SentencePiece writes a space
_BYTE: Final = re.compile(r"<0x([0-9A-F]{2})>")
_PIECE_STEPS: Final = frozenset({"Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"})


def bytes_of_token(decoder: Mapping[str, Any] | None) -> BytesOfToken:
    """Byte-level, or SentencePiece's pieces with or without fallback to bytes.

    A SentencePiece decoder takes the first space off a text: it stands for the start of the text,
    and an output is no start. So it is kept. Raises ModelError for any other decoder.
    """
    steps = _steps(decoder or {})
    kinds = [str(step.get("type")) for step in steps]
    if kinds == ["ByteLevel"]:
        return token_to_bytes
    if not _PIECE_STEPS.issuperset(kinds) or not any(map(_writes_spaces, steps)):
        names = " + ".join(kinds)
        raise ModelError(
            f"tokenizer.json: decoder {names!r} is not supported, only 'ByteLevel' and "
            "SentencePiece's (Replace or Metaspace, with ByteFallback, Fuse, Strip)"
        )
    return piece_to_bytes if "ByteFallback" in kinds else _text_of_piece


def piece_to_bytes(piece: str) -> bytes:
    """The bytes a SentencePiece entry stands for: a text, or one byte as `<0x0A>`."""
    byte = _BYTE.fullmatch(piece)
    return bytes([int(byte.group(1), 16)]) if byte else _text_of_piece(piece)


def _text_of_piece(piece: str) -> bytes:
    return piece.replace(_SPACE, " ").encode("utf-8", "surrogatepass")


def _steps(decoder: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if decoder.get("type") != "Sequence":
        return [decoder]
    return [step for part in decoder.get("decoders", ()) for step in _steps(part)]


def _writes_spaces(step: Mapping[str, Any]) -> bool:
    if step.get("type") == "Metaspace":
        return bool(step.get("replacement", _SPACE) == _SPACE)
    return bool(
        step.get("type") == "Replace"
        and step.get("content") == " "
        and step.get("pattern") == {"String": _SPACE}
    )
