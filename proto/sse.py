"""Server-sent events: how we write them, and how a relayed stream is read without touching it.

Format: https://html.spec.whatwg.org/multipage/server-sent-events.html, the `data` field only.
"""

from collections.abc import Iterator

CONTENT_TYPE = b"text/event-stream"
DONE_DATA = b"[DONE]"
DONE = b"data: [DONE]\n\n"


def event(data: bytes) -> bytes:
    """One event with one line of data; `data` holds no line break (JSON never does)."""
    return b"data: " + data + b"\n\n"


class SseScanner:
    """Finds the events of a stream that arrives in pieces cut anywhere.

    A blank line ends an event; lines end with LF, CRLF or CR; one space after the colon is
    optional; comments and other fields are passed over. There is no limit on a line: what is kept
    is one unfinished event, whose size its sender bounds. O(bytes fed).
    """

    def __init__(self) -> None:
        self._rest = bytearray()  # of the line that has not ended
        self._data: list[bytes] = []  # of the event that has not ended
        self._after_cr = False  # an LF that follows belongs to the same line end
        self._searched = 0  # of _rest, known to hold no line end

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of each event that `piece` completes, its lines joined by LF."""
        start = 0
        if self.between_events:
            # As engines write them, one line each: a fourth of the time.
            while piece.startswith(b"data: ", start):
                end = piece.find(b"\n", start)
                if piece[end + 1 : end + 2] != b"\n" or piece.find(b"\r", start, end) >= 0:
                    break
                yield piece[start + 6 : end]
                start, self._after_cr = end + 2, False
        if start:
            piece = piece[start:]
        for line in self._lines(piece):
            if line:
                if line.startswith(b"data:"):
                    self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif self._data:
                whole = b"\n".join(self._data)
                self._data.clear()
                yield whole

    @property
    def between_events(self) -> bool:
        """Nothing of an unfinished event has been seen: a cut here would lose nothing."""
        return not self._rest and not self._data

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        if self._after_cr and piece:
            self._after_cr = False
            if piece[:1] == b"\n":
                piece = piece[1:]
        rest: bytes | bytearray = piece  # not copied, as it mostly begins with a line
        if self._rest:
            self._rest += piece
            rest = self._rest
        start = 0
        while True:
            end, width = _line_end(rest, max(start, self._searched))
            if end < 0:
                break
            line = bytes(rest[start:end])
            start = end + width
            self._searched = start
            # A CR at the very end of what has come may be half of a CRLF.
            self._after_cr = rest[end] == 13 and width == 1 and start == len(rest)
            yield line
        if rest is self._rest:
            del self._rest[:start]
        else:
            self._rest += rest[start:]
        self._searched = len(self._rest)


def _line_end(text: bytes | bytearray, start: int) -> tuple[int, int]:
    """Where the next line ends and how wide its end is; (-1, 0) if none has come."""
    lf = text.find(b"\n", start)
    cr = text.find(b"\r", start, lf if lf >= 0 else len(text))
    if cr < 0:
        return lf, 1
    return cr, 2 if lf == cr + 1 else 1
