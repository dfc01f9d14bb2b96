"""Heads of a worker's answers that were read before, so that equal bytes are not read again."""

import msgspec

from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.heads.hop_headers import find

# Lengths and dates differ, so many come again for a second and then no more.
MAX_HEADS = 256
MAX_HEAD_BYTES = 1_024
# A longer body seldom comes in one piece.
MAX_BODY_BYTES = 65_536
_VERSION_BYTES = len(b"HTTP/1.1 ")
_FRAMING = (b"transfer-encoding", b"content-length")


class AnswerHead(msgspec.Struct, gc=False):
    """Of an answer on a connection that was kept: one in chunks, or one that came whole in one
    piece, with a length."""

    size: int  # bytes of the head, up to its body
    whole: int | None  # bytes with the body; None: it is in chunks
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
        if known is None or known.whole not in (None, len(piece)):
            return None
        return known

    def learn(self, piece: bytes, status: int, headers: Headers) -> None:
        """Remember the head of a whole answer that the parser has read."""
        head, length = _own_head(piece, status), find(headers, b"content-length")
        if head is None or length is None:
            return
        whole = len(head) + int(length)
        if whole == len(piece) and int(length) <= MAX_BODY_BYTES:
            self._keep(head, whole, status, headers)

    def learn_chunked(self, piece: bytes, status: int, headers: Headers) -> None:
        """Remember the head that `piece` begins with, if the body behind it is in chunks."""
        head = _own_head(piece, status) if status == 200 else None
        framing = [value for name, value in headers if name in _FRAMING]
        if head is not None and framing == [b"chunked"]:
            self._keep(head, None, status, headers)

    def _keep(self, head: bytes, whole: int | None, status: int, headers: Headers) -> None:
        if len(self._known) >= MAX_HEADS:
            self._known.clear()
        self._known[head] = AnswerHead(len(head), whole, status, headers)

    def same(self, piece: bytes, status: int, headers: Headers) -> Headers:
        """The list that the same head had before, so that what was made of it is found by its id.

        `piece` begins an answer that the parser has read. Never changed, as others share it.
        """
        head = _own_head(piece, status) if status == 200 else None
        if head is None:
            return headers
        if len(self._lists) >= MAX_HEADS:
            self._lists.clear()
        return self._lists.setdefault(head, headers)


def _own_head(piece: bytes, status: int) -> bytes | None:
    """The head that `piece` begins with, up to and with its blank line. None: it is long, or an
    interim one, which stands before the answer's own."""
    head = piece[: piece.find(b"\r\n\r\n") + 4]
    own = head[_VERSION_BYTES : _VERSION_BYTES + 3] == b"%d" % status
    return head if own and len(head) <= MAX_HEAD_BYTES else None
