"""What the events of a stream that are kept no more have told of its choices, for an end by order.

Of a stream of several choices the last few events may all be one's: another has had its finish long
before, or, where each event brings all of its text, has that in an event which is let go.
"""

from collections.abc import Sequence

import msgspec

# Of all choices together; one gateway holds at most this much for each running answer.
MOST_BYTES = 16 * 1024 * 1024


class _Meta(msgspec.Struct):
    finish_reason: object = None


class _Choice(msgspec.Struct):
    index: int = 0
    finish_reason: object = None


class _Told(msgspec.Struct):
    index: int | None = None  # of SGLang's native batches
    meta_info: _Meta | None = None
    choices: list[_Choice] | None = None


_decode = msgspec.json.Decoder(_Told).decode


def tells_of_choices(stream: bytes) -> bool:
    """Whether `stream`, some whole events, has anything to be kept: most have not. Two passes at
    the speed of memory."""
    first = stream[: stream.find(b"\n\n")]
    if b'"meta_info"' in first:
        return b'"index"' in first  # as in all of a batch, and in none of another
    return b'finish_reason":"' in stream or b'finish_reason": "' in stream


class LetGoChoices:
    """By choice: the event with its finish, or, of a native batch, its last. Bounded by choices and
    `MOST_BYTES`."""

    __slots__ = ("_events", "_size")

    def __init__(self) -> None:
        self._events: dict[int, bytes] = {}
        self._size = 0

    def read(self, events: Sequence[bytes]) -> None:
        """The data of those that are let go, in their order. What is no answer is passed over."""
        for data in events:
            try:
                told = _decode(data)
            except (msgspec.MsgspecError, RecursionError):
                continue
            if told.meta_info is not None and told.index is not None:
                self._keep(told.index, data)
            for choice in told.choices or ():
                if choice.finish_reason is not None:
                    self._keep(choice.index, data)

    def last_events(self) -> list[bytes]:
        """The data of those kept, each once."""
        return list(dict.fromkeys(self._events.values()))

    def _keep(self, index: int, data: bytes) -> None:
        self._size += len(data) - len(self._events.get(index, b""))
        if self._size > MOST_BYTES:
            # It is known to have had something, and not what.
            self._size -= len(data)
            data = b'{"index":%d,"meta_info":{"finish_reason":"unknown"}}' % index
            self._size += len(data)
        self._events[index] = data
