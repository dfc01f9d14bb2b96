"""The printable characters in which a byte-level vocabulary writes bytes, and back."""


def _printable() -> dict[int, str]:
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in set(kept)]
    characters = {byte: chr(byte) for byte in kept}
    return characters | {byte: chr(256 + place) for place, byte in enumerate(moved)}


BYTE_TO_CHARACTER: dict[int, str] = _printable()
CHARACTER_TO_BYTE: dict[str, int] = {text: byte for byte, text in BYTE_TO_CHARACTER.items()}

# Moved bytes stand as characters over U+0100, so their own code points mean nothing here: they
# are sent to a character that Latin-1 lacks, and `token_to_bytes` sees that the map does not apply.
_NOT_A_BYTE = "\uffff"
_TABLE = str.maketrans(
    {byte: _NOT_A_BYTE for byte in BYTE_TO_CHARACTER if chr(byte) not in CHARACTER_TO_BYTE}
    | {ord(text): chr(byte) for text, byte in CHARACTER_TO_BYTE.items()}
)


def token_to_bytes(token: str) -> bytes:
    """The bytes a vocabulary entry stands for. O(len(token)).

    An entry with any character outside the map stands for its own UTF-8, as in the reference.
    """
    try:
        return token.translate(_TABLE).encode("latin-1")
    except UnicodeEncodeError:
        return token.encode("utf-8", "surrogatepass")


def bytes_to_token(data: bytes) -> str:
    """How a byte-level vocabulary writes these bytes. O(len(data))."""
    return "".join(BYTE_TO_CHARACTER[byte] for byte in data)
