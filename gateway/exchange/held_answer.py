"""What the client has not seen of an answer: while it is held, another may take its place."""

from radixgate.gateway.attempt.attempt import AnswerCounts, Downstream, Headers
from radixgate.gateway.choice.retries import RETRIABLE_STATUSES
from radixgate.gateway.heads.hop_headers import find

# A whole (not streamed) answer up to this size is sent only when complete, so that one which breaks
# off becomes a clean error. Larger ones are passed on as they come.
MAX_HELD_BYTES = 65_536


class HeldAnswer:
    """Head and first bytes of one attempt's answer."""

    __slots__ = ("_parts", "_size", "headers", "ok", "status", "streams")

    def __init__(self, status: int, headers: Headers, *, streams: bool = False) -> None:
        """`streams`: it is known to; False: that is for its headers to say."""
        self.status = status
        self.headers = headers
        self.streams = streams or _are_of_a_stream(headers)
        self.ok = 200 <= status < 300
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def retriable(self) -> bool:
        return self.status in RETRIABLE_STATUSES

    @property
    def retry_after_s(self) -> float:
        """How long the worker asks for; 0 if it does not, or gives a date."""
        asked = find(self.headers, b"retry-after")
        return float(asked) if asked is not None and asked.isdigit() and len(asked) < 9 else 0.0

    def add(self, data: bytes) -> bool:
        """Take a piece; True: it is time to send. A stream waits only for its first byte."""
        self._parts.append(data)
        self._size += len(data)
        return (self.streams and self.ok) or self._size > MAX_HELD_BYTES

    def send(self, downstream: Downstream, extra: Headers) -> None:
        """Hand on what is held, with `extra` behind the worker's own headers."""
        downstream.on_head(self.status, self.headers + extra)
        if self._parts:
            downstream.on_body(self._parts[0] if len(self._parts) == 1 else b"".join(self._parts))
            self._parts.clear()

    def send_whole(
        self, downstream: Downstream, extra: Headers, counts: AnswerCounts | None
    ) -> None:
        """Hand on an answer that is complete: its length is known now."""
        if self._size and find(self.headers, b"content-length") is None:
            extra = [*extra, (b"content-length", b"%d" % self._size)]
        self.send(downstream, extra)
        downstream.on_end(counts)


def _are_of_a_stream(headers: Headers) -> bool:
    kind = find(headers, b"content-type")
    return kind is not None and kind.lower().startswith(b"text/event-stream")
