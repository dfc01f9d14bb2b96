"""What a conversation looks like to a router that knows no tokenizer: bytes that only grow."""

from collections.abc import Mapping, Sequence

import msgspec
from xxhash import xxh3_64_hexdigest

# Between messages and fields: bytes that no JSON string can hold unescaped.
MESSAGE_END = b"\x1e"
FIELD = b"\x1f"
_USER = b"user" + FIELD
_PLAIN = frozenset(("role", "content"))


def message_bytes(
    messages: Sequence[Mapping[str, object]], tools: Sequence[object] | None = None
) -> bytes:
    """Tools, then every message with role and content in order; turn n is a prefix of turn n + 1.

    Parts are joined by their texts, so that both spellings of one content are equal; whatever else
    a message carries (tool calls, images) follows its content as JSON. O(bytes).
    """
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


def message_pieces(role: str, content: object, rest: bytes) -> tuple[bytes, ...]:
    """One message; `rest` is what it carries besides, as JSON, and empty if that is nothing."""
    start = role.encode("utf-8", "replace") + FIELD
    if isinstance(content, str):
        text = content.encode("utf-8", "surrogatepass")
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
    return msgspec.json.encode(part, order="sorted")
