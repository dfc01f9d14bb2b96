"""Heads of a worker's answers that were read before, so that equal bytes are not read again."""

import msgspec

from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.heads.hop_headers import find

# Lengths and dates differ, so many come again for a second and then no more.
MAX_HEADS = 256
MAX_HEAD_BYTES = 1_024
# A longer body seldom comes in one piece.
MAX_BODY_BYTES = 65_536
_FRAMING = (b"transfer-encoding", b"content-length")


class AnswerHead(msgspec.Struct, gc=False):
    """Of an answer on a connection that was kept: one in chunks, or one that came whole in one
    piece, with a length."""

    size: int  # bytes of the head, up to its body
    whole: int  # bytes with the body; 0: it is in chunks
    status: int
    headers: Headers  # shared by all answers with this head: never changed


class AnswerHeads:
    """The last heads of one worker; all are forgotten when there are too many."""

    def __init__(self) -> None:
        self._known: dict[bytes, AnswerHead] = {}
        self._lists: dict[bytes, Headers] = {}  # of answers that the parser has read

    def find(self, piece: bytes) -> AnswerHead | None:
        """The head of a piece that is a whole answer, no more and no less, or begins one in chunks;
        None: parse it. O(1)."""
        known = self._known.get(piece[: piece.find(b"\r\n\r\n") + 4])
        if known is None or known.whole not in (0, len(piece)):
            return None
        return known

    def learn(self, piece: bytes, status: int, headers: Headers) -> None:
        """Remember the head of a whole answer that the parser has read."""
        size = piece.find(b"\r\n\r\n") + 4
        length = find(headers, b"content-length")
        if length is None or not 4 < size <= MAX_HEAD_BYTES or status < 200:
            return
        whole = size + int(length)
        if whole != len(piece) or int(length) > MAX_BODY_BYTES:
            return
        self._keep(piece, AnswerHead(size, whole, status, headers))

    def learn_chunked(self, piece: bytes, status: int, headers: Headers) -> None:
        """Remember the head that `piece` begins with, if the body behind it is in chunks."""
        size = piece.find(b"\r\n\r\n") + 4
        # An interim head may stand before the answer's own.
        if status != 200 or not piece.startswith(b"HTTP/1.1 200") or not 4 < size <= MAX_HEAD_BYTES:
            return
        framing = [value for name, value in headers if name in _FRAMING]
        if framing == [b"chunked"]:
            self._keep(piece, AnswerHead(size, 0, status, headers))

    def _keep(self, piece: bytes, head: AnswerHead) -> None:
        if len(self._known) >= MAX_HEADS:
            self._known.clear()
        self._known[piece[: head.size]] = head

    def same(self, piece: bytes, status: int, headers: Headers) -> Headers:
        """The list that the same head had before, so that what was made of it is found by its id.

        `piece` begins an answer that the parser has read. Never changed, as others share it.
        """
        size = piece.find(b"\r\n\r\n") + 4
        # An interim head may stand before the answer's own.
        if status != 200 or not piece.startswith(b"HTTP/1.1 200") or size > MAX_HEAD_BYTES:
            return headers
        if len(self._lists) >= MAX_HEADS:
            self._lists.clear()
        return self._lists.setdefault(piece[:size], headers)
