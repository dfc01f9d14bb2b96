"""When a stream really begins: the first event that carries output, not the one with the role."""

import msgspec

from radixgate.proto import sse

# A stream that has not shown a token within so many bytes is taken to have begun.
MAX_LOOKED_AT_BYTES = 65_536


class _Choice(msgspec.Struct):
    delta: dict[str, object] | None = None  # None: a text completion
    text: object = None
    finish_reason: object = None

    @property
    def has_output(self) -> bool:
        if self.finish_reason is not None or self.text:
            return True
        delta = self.delta or {}
        return any(value for name, value in delta.items() if name != "role")


# With these a stream of /v1/responses opens, before there is output.
_OPENING = ("response.created", "response.queued", "response.in_progress")


class _Event(msgspec.Struct):
    choices: list[_Choice] | None = None
    error: object = None
    type: object = None

    @property
    def has_output(self) -> bool:
        if self.error is not None or self.type in _OPENING:
            return False
        # Events of another form than OpenAI's (SGLang's own) come only with output.
        return self.choices is None or any(choice.has_output for choice in self.choices)


_decode = msgspec.json.Decoder(_Event).decode


class FirstToken:
    """Looks at the start of one stream. After the token has been seen nothing is read any more."""

    def __init__(self) -> None:
        self._scanner = sse.SseScanner()
        self._looked_at = 0
        self.seen = False

    def feed(self, data: bytes) -> bool:
        """True once, for the piece that brings the first output."""
        self._looked_at += len(data)
        for event in self._scanner.feed(data):
            if event != sse.DONE_DATA and _has_output(event):
                self.seen = True
                return True
        self.seen = self._looked_at > MAX_LOOKED_AT_BYTES
        return self.seen


def begins_with_output(piece: bytes) -> bool:
    """Of a stream's first piece: its first event is whole, is one line, and brings output. False:
    that is for `FirstToken` to find out, which takes three times as long."""
    end = piece.find(b"\n\n")
    if end < 0 or not piece.startswith(b"data: "):
        return False
    event = piece[6:end]
    return not (b"\n" in event or b"\r" in event or event == sse.DONE_DATA) and _has_output(event)


def _has_output(event: bytes) -> bool:
    try:
        return _decode(event).has_output
    except msgspec.MsgspecError:
        return True
