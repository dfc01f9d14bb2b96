"""Bodies that begin like one before: of a long text, what is known is neither decoded nor copied.

The next turn about a long document, and the next request with a long instruction, repeat its bytes.
They are known by a hash of the body's beginning, and the decoder gets the body without them, a mark
in their place: what it makes of that is what it would make of the whole, but for the text.
"""

import secrets

import msgspec
from xxhash import xxh3_64_intdigest, xxh3_128_intdigest

from radixgate.errors import RequestError
from radixgate.gateway.asking.foreign_request import ForeignRequest, read_foreign
from radixgate.gateway.asking.text_cut import cut_before, text_around, text_of
from radixgate.proto.blocks import LONG_AFTER_BYTES
from radixgate.proto.routing_text import FIELD, MESSAGE_END

# A beginning is known in pieces of this size; behind them what is left in smaller ones.
PIECE_BYTES = 16_384
SMALL_PIECE_BYTES = 4_096
# Of a shorter body, or one without a text so long, nothing is remembered.
LEAST_BODY_BYTES = 2 * PIECE_BYTES
LEAST_TEXT_BYTES = 8_192
# How much of a body is looked at, and how many beginnings are remembered. They hold no text, a
# hash and five numbers each; all are forgotten at once, and learned as they come again.
MAX_BEGINNING_BYTES = 1 << 20
MAX_BEGINNINGS = 8_192

_64_BITS = (1 << 64) - 1
# Where messages begin there is no long text.
_MESSAGE = b'"role"'


class Hole(msgspec.Struct, frozen=True, eq=False):
    """What may be left out of the bodies that begin alike. It ends where a block of the prompt
    does, behind the small ones."""

    start: int  # in the body; where its text begins
    cut: int  # in the body
    before: int  # bytes of the prompt in front of it
    digest: int  # of those
    end: int  # in the prompt

    @property
    def size(self) -> int:
        """Bytes of the prompt."""
        return self.end - self.before


# What came once may never come again; where nothing can be left out, it is not tried again.
_ONCE, _NONE = Hole(0, 0, 0, 0, 0), Hole(0, 0, 0, 0, 0)


class KnownBodies:
    """`read_foreign` with a memory."""

    def __init__(self) -> None:
        # Nothing that anybody may foresee: neither a mark in a prompt of his own, nor two bodies
        # with one hash, by which a field could be hidden from us. So no seeded random source.
        self._seed = secrets.randbits(64)
        self._mark = secrets.token_hex(16).encode()
        self._known: dict[int, Hole] = {}

    def read(self, path: bytes, body: bytes, owner: str = "") -> tuple[ForeignRequest, Hole | None]:
        """With a hole the prompt lacks its bytes, and all else is as without.

        Of what another `owner` has sent nothing is known, nor told by how long this takes.
        Raises as `read_foreign`. What is known costs 2 us for 100 KB, and 0.6 us a piece.
        """
        last = min(len(body), MAX_BEGINNING_BYTES)
        low, high = (last - LEAST_TEXT_BYTES) // 2, (last + LEAST_TEXT_BYTES) // 2
        # A single byte is found twenty times as fast as several.
        if body.find(b'"', low, high) >= 0 and body.find(_MESSAGE, low, high) >= 0:
            return read_foreign(path, body), None
        hole, again = self._find(b"%b %b" % (path, owner.encode()), body, last)
        if again is not None:
            request = read_foreign(path, body)
            key, place = again
            self._known[key] = self._learn(path, body, place, request)
            return request, None
        around = None if hole is None else self._read_around(path, body, hole)
        return (read_foreign(path, body), None) if around is None else (around, hole)

    def _find(
        self, whose: bytes, body: bytes, last: int
    ) -> tuple[Hole | None, tuple[int, int] | None]:
        """The largest known hole; and a longer beginning that came once: its key and its end."""
        whole = last // PIECE_BYTES * PIECE_BYTES
        view, key, start = memoryview(body), xxh3_64_intdigest(whose, self._seed), 0
        hole: Hole | None = None
        again: tuple[int, int] | None = None
        for end in (
            *range(PIECE_BYTES, whole + 1, PIECE_BYTES),
            *range(whole + SMALL_PIECE_BYTES, last + 1, SMALL_PIECE_BYTES),
        ):
            key = xxh3_128_intdigest(view[start:end], key & _64_BITS)
            found = self._known.get(key)
            if found is None:
                self._remember(key)
            elif found is _ONCE:
                again = key, end
            elif found is not _NONE:
                hole, again = found, None
            start = end
        return hole, again

    def _remember(self, key: int) -> None:
        if len(self._known) >= MAX_BEGINNINGS:
            self._known.clear()
        self._known[key] = _ONCE

    def _read_around(self, path: bytes, body: bytes, hole: Hole) -> ForeignRequest | None:
        """None: the text is used in another way than it was."""
        mark = self._mark
        try:
            request = read_foreign(path, b"%b%b%b" % (body[: hole.start], mark, body[hole.cut :]))
        except RequestError:
            return None  # it must be told of the whole
        prompt = request.prompt
        before, found, rest = prompt.partition(mark)
        if not found or len(before) != hole.before or self._digest(before) != hole.digest:
            return None
        # What separates messages could have begun in the hole.
        if FIELD in rest[:8]:
            return None
        return msgspec.structs.replace(request, prompt=before + rest)

    def _learn(self, path: bytes, body: bytes, place: int, request: ForeignRequest) -> Hole:
        """From a body that was read: what of it may be left out, up to about `place`."""
        try:
            return self._hole(path, body, place, request)
        except (RequestError, msgspec.DecodeError):
            return _NONE  # to the reader it was no text

    def _hole(self, path: bytes, body: bytes, place: int, request: ForeignRequest) -> Hole:
        text = text_around(body, place)
        if text is None or place - text[0] < LEAST_TEXT_BYTES:
            return _NONE
        start, end = text
        marked = read_foreign(path, b"%b%b%b" % (body[:start], self._mark, body[end:])).prompt
        before, found, _ = marked.partition(self._mark)
        cut = cut_before(body, start, place, len(before)) if found else None
        if cut is None or cut[1] < LONG_AFTER_BYTES:
            return _NONE
        hole = Hole(start, cut[0], len(before), self._digest(before), cut[1])
        left_out = text_of(body, start, hole.cut)
        around = self._read_around(path, body, hole)
        if around is None or FIELD in left_out or MESSAGE_END in left_out:
            return _NONE
        whole = around.prompt[: hole.before] + left_out + around.prompt[hole.before :]
        return hole if msgspec.structs.replace(around, prompt=whole) == request else _NONE

    def _digest(self, text: bytes) -> int:
        return xxh3_128_intdigest(text, self._seed)
