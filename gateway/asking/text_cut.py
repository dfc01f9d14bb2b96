"""Where a long text of a JSON body can be cut, so that both halves read as the whole does.

Between two characters of a string, as they are written, the decoder's state is the same wherever
one stands: so a part of the text can be left out without a change to anything else.
"""

import re

import msgspec

from radixgate.proto.blocks import blocks_in_bytes, bytes_in_blocks

# The cut is looked for in so many bytes before the place that is wished for, then further ahead:
# where a character is three bytes long, and written as an escape, two in three blocks end in one.
WINDOW_BYTES, WINDOWS = 4_096, 4
# A body with more quotes before its text is not worth the search, 0.3 us each.
MAX_QUOTES = 8_192
# The longest way to write a character: the two escapes of a surrogate pair.
_LONGEST_BYTES = 12

_read_text = msgspec.json.Decoder(str).decode
_WRITTEN = re.compile(
    rb"(?P<plain>[^\\]+)|(?P<pair>\\ud[89ab]..\\ud[c-f]..)|\\u(?P<code>....)|\\[^u]",
    re.DOTALL | re.IGNORECASE,
)
_LOW_SURROGATE = re.compile(rb"\\ud[c-f]", re.IGNORECASE)


def text_around(body: bytes, place: int) -> tuple[int, int] | None:
    """Where the text begins that goes on at `place`, and where its closing quote stands.

    None: `place` is in no string, or too many quotes stand before it. `body` is valid JSON.
    """
    start = 0  # of the string that is open; 0: none is
    quote = body.find(b'"')
    for _ in range(MAX_QUOTES):
        if quote < 0:
            return None
        if not start:
            if quote >= place:
                return None
            start = quote + 1
        elif not _is_escaped(body, quote):
            if quote >= place:
                return start, quote
            start = 0
        quote = body.find(b'"', quote + 1)
    return None


def text_of(body: bytes, start: int, end: int) -> bytes:
    """What part of a string says. Raises msgspec.DecodeError unless both ends are between
    characters."""
    return _read_text(b'"%b"' % body[start:end]).encode()


def cut_before(body: bytes, start: int, place: int, before: int) -> tuple[int, int] | None:
    """A cut in front of `place` at which a block ends, and the bytes of the prompt up to there.

    The text begins at `start`, and `before` bytes of the prompt stand in front of it. None: there
    is no such cut nearby. About 30 us, and up to 1 ms a window where much is escaped.
    """
    for _ in range(WINDOWS):
        if place <= start:
            return None
        found = _cut_in_window(body, start, place, before)
        if found is not None:
            return found
        place -= WINDOW_BYTES
    return None


def _cut_in_window(body: bytes, start: int, place: int, before: int) -> tuple[int, int] | None:
    """The last one in it."""
    at = _between_characters(body, start, place)
    if at is None:
        return None
    found, size = None, before + len(text_of(body, start, at))
    while at < place and (written := _WRITTEN.match(body, at, place)):
        length = _length(written)
        for blocks in range(blocks_in_bytes(size + length), -1, -1):
            end = bytes_in_blocks(blocks)
            if end < size:
                break
            cut = at + end - size
            # Of an escape only the beginning is between characters.
            if cut == at or (written["plain"] and not _continues(body, cut)):
                found = cut, end
                break
        size += length
        at = written.end()
    return found


def _between_characters(body: bytes, start: int, place: int) -> int | None:
    """The first such place in the window."""
    if place - start <= WINDOW_BYTES:
        return start
    for at in range(place - WINDOW_BYTES, place):
        if body[at] == 0x5C:
            # Behind anything but another one a backslash begins an escape.
            if body[at - 1] != 0x5C and not _LOW_SURROGATE.match(body, at):
                return at
        elif body.rfind(b"\\", at - _LONGEST_BYTES, at) < 0 and not _continues(body, at):
            return at
    return None


def _length(written: "re.Match[bytes]") -> int:
    """In bytes of UTF-8."""
    if written["plain"]:
        return len(written["plain"])
    if written["pair"]:
        return 4
    code = int(written["code"] or b"0", 16)
    return 1 if code < 0x80 else 2 if code < 0x800 else 3


def _is_escaped(body: bytes, quote: int) -> bool:
    slashes = 0
    while body[quote - 1 - slashes] == 0x5C:
        slashes += 1
    return slashes % 2 == 1


def _continues(body: bytes, at: int) -> bool:
    """Inside a character of several bytes."""
    return body[at] & 0xC0 == 0x80
