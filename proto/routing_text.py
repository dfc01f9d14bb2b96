"""What a conversation looks like to a router that knows no tokenizer: bytes that only grow."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec
from xxhash import xxh3_64_hexdigest, xxh3_128_hexdigest

# Between messages and fields: bytes that no JSON string can hold unescaped.
MESSAGE_END = b"\x1e"
FIELD = b"\x1f"
# A longer part that is no text is a picture or a sound, of which no engine caches the letters.
LONG_PART_BYTES = 4_096
_USER = b"user" + FIELD
_PLAIN = frozenset(("role", "content"))


def message_bytes(
    messages: Sequence[Mapping[str, object]], tools: Sequence[object] | None = None
) -> bytes:
    """Tools, then every message with role and content in order; turn n is a prefix of turn n + 1.

    Parts are joined by their texts, so that both spellings of one content are equal; whatever else
    a message carries (tool calls, images) follows its content as JSON. Of a part of over 4 KB that
    is no text a hash stands for its bytes. O(bytes).
    """
    if not tools and all(map(_is_plain, messages)):
        text = "".join([f"{one['role']}\x1f{one['content']}\x1e" for one in messages])
        with suppress(UnicodeEncodeError):  # half of a surrogate pair
            return text.encode()
    pieces: list[bytes] = []
    if tools:
        pieces += (msgspec.json.encode(tools, order="sorted"), MESSAGE_END)
    for message in messages:
        rest = b""
        if message.keys() - _PLAIN:
            more = {key: value for key, value in message.items() if key not in _PLAIN}
            rest = msgspec.json.encode(more, order="sorted")
        pieces += message_pieces(str(message.get("role")), message.get("content"), rest)
    return b"".join(pieces)


def _is_plain(message: Mapping[str, object]) -> bool:
    """Two texts and nothing else, as most are."""
    return (
        len(message) == 2
        and type(message.get("role")) is str
        and type(message.get("content")) is str
    )


def message_pieces(role: str, content: object, rest: bytes) -> tuple[bytes, ...]:
    """One message; `rest` is what it carries besides, as JSON, and empty if that is nothing.

    `content`: as it was decoded, or the bytes of its parts as `parts_bytes` gives them.
    """
    start = role.encode("utf-8", "replace") + FIELD
    if isinstance(content, str):
        text = content.encode("utf-8", "surrogatepass")
    elif isinstance(content, bytes):
        text = content
    else:
        text = _content(content)
    return (start, text, FIELD, rest, MESSAGE_END) if rest else (start, text, MESSAGE_END)


def conversation_of(text: bytes) -> str | None:
    """A name for the conversation: equal for all its turns, as its first exchange stays the same.

    None where there are no messages, as in a plain prompt. O(bytes up to the first user message).
    """
    end = first_exchange(text)
    return None if end is None else xxh3_64_hexdigest(text[:end])


def first_exchange(text: bytes) -> int | None:
    """Where it ends: all turns of a conversation are equal up to there. None: no messages."""
    start = text.find(_USER)
    end = text.find(MESSAGE_END, start)
    return None if start < 0 or end < 0 else end


def _content(content: object) -> bytes:
    """Of what is no plain text."""
    if isinstance(content, list):
        return b"".join(map(_part, content))
    return b"" if content is None else msgspec.json.encode(content, order="sorted")


def _part(part: object) -> bytes:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"]).encode("utf-8", "surrogatepass")
    written = msgspec.json.encode(part, order="sorted")
    return written if len(written) <= LONG_PART_BYTES else _digested(written)


def parts_bytes(parts: Sequence[msgspec.Raw]) -> bytes:
    """As of the decoded parts, but that a long one which is no text is told by the bytes that the
    client wrote, and never decoded: a client writes a picture the same each time."""
    return b"".join([_written_part(part) for part in parts])


class _Kind(msgspec.Struct):
    type: object = None


_kind_of = msgspec.json.Decoder(_Kind).decode


def _written_part(part: msgspec.Raw) -> bytes:
    if len(memoryview(part)) > LONG_PART_BYTES:
        try:
            if _kind_of(part).type != "text":
                return _digested(memoryview(part))
        except msgspec.ValidationError:
            pass  # no object; whatever it is, it is hashed as it is
    return _part(msgspec.json.decode(part))


def _digested(written: bytes | memoryview) -> bytes:
    """A picture is worth a thousand tokens or so, however many bytes it has."""
    name = xxh3_128_hexdigest(written).encode()
    return name * (LONG_PART_BYTES // len(name))
