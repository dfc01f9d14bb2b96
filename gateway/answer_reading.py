"""What the gateway reads out of an answer that it passes on untouched: its end and its counts.

A stream is not parsed event by event: its pieces are kept aside and, once it has ended, the last
few events are read. So a chunk costs an append, however the worker cut it.
"""

import re
from typing import Protocol

import msgspec

from radixgate.gateway.attempt import AnswerCounts
from radixgate.proto import sse

# Kept of a stream before what is older than its last events is let go: some seventy events. It is
# what a slow stream holds, so that thousands of them hold little.
TRIM_AT_BYTES = 8_192
# A piece of half of that is no slow stream's, and may well be the last: it is not looked through
# for events until there is so much.
TRIM_FAST_AT_BYTES = 32_768
KEPT_EVENTS = 4
# An event, or a whole answer, larger than this is passed on but no longer read: its counts are
# unknown. One gateway holds at most this much for each running answer.
MAX_READ_BYTES = 16 * 1024 * 1024

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n")
# `bytes.count` of two characters looks at each place; this jumps from one LF to the next.
_find_blank_lines = re.compile(rb"\n\n").findall
_UNKNOWN = AnswerCounts()


class AnswerReader(Protocol):
    """Watches one answer go by."""

    def feed(self, data: bytes) -> None: ...

    def is_whole(self) -> bool:
        """Asked once the worker has ended the answer properly: does it end as answers do?"""
        ...

    def counts(self) -> AnswerCounts:
        """Unknown where the answer does not say. O(what is kept)."""
        ...

    def counts_so_far(self) -> AnswerCounts:
        """Of an answer that ends here, cut short. Nothing may be asked after it."""
        ...


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    """Of chats, completions, embeddings; and under other names of /v1/responses."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _PromptDetails | None = None

    def counts(self) -> AnswerCounts:
        details = self.prompt_tokens_details or self.input_tokens_details
        return AnswerCounts(
            prompt=self.input_tokens if self.prompt_tokens is None else self.prompt_tokens,
            cached=None if details is None else details.cached_tokens,
            completion=(
                self.output_tokens if self.completion_tokens is None else self.completion_tokens
            ),
        )


class _Response(msgspec.Struct):
    """What the events of /v1/responses hold."""

    id: object = None
    usage: _Usage | None = None

    def counts(self) -> AnswerCounts | None:
        counts = None if self.usage is None else self.usage.counts()
        if not isinstance(self.id, str):
            return counts
        return msgspec.structs.replace(counts or _UNKNOWN, response_id=self.id)


class _MetaInfo(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: object = None


class _Choice(msgspec.Struct):
    finish_reason: object = None


class _Answer(msgspec.Struct):
    """What an answer says of its cost, in OpenAI's or SGLang's native form."""

    usage: _Usage | None = None
    meta_info: _MetaInfo | None = None
    id: object = None
    what: object = msgspec.field(default=None, name="object")

    def counts(self) -> AnswerCounts | None:
        if self.what == "response":
            return _Response(self.id, self.usage).counts()
        if self.usage is not None:
            return self.usage.counts()
        if self.meta_info is not None:
            meta = self.meta_info
            return AnswerCounts(meta.prompt_tokens, meta.cached_tokens, meta.completion_tokens)
        return None


# The last event of a stream of /v1/responses is one of these.
_LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed", "error")


class _Event(_Answer):
    """An event of a streamed answer."""

    choices: list[_Choice] | None = None
    error: object = None
    type: object = None  # of the events of /v1/responses
    response: _Response | None = None

    def counts(self) -> AnswerCounts | None:
        if self.response is not None:
            return self.response.counts()
        return super().counts()

    @property
    def finishes(self) -> bool:
        if self.error is not None or self.type in _LAST_EVENTS:
            return True
        if self.meta_info is not None and self.meta_info.finish_reason is not None:
            return True
        return any(choice.finish_reason is not None for choice in self.choices or ())


_decode_one = msgspec.json.Decoder(_Answer).decode
_decode_many = msgspec.json.Decoder(list[_Answer]).decode
_decode_event = msgspec.json.Decoder(_Event).decode


class WholeAnswer:
    """A JSON answer, read when it is complete. Its framing alone says whether it is whole."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= MAX_READ_BYTES:
            self._parts.append(data)

    def is_whole(self) -> bool:
        return True

    def counts(self) -> AnswerCounts:
        if self._size > MAX_READ_BYTES:
            return _UNKNOWN
        return counts_of(self._parts[0] if len(self._parts) == 1 else b"".join(self._parts))

    def counts_so_far(self) -> AnswerCounts:
        return _UNKNOWN


def counts_of(body: bytes) -> AnswerCounts:
    """Of a JSON answer that is there as a whole; unknown where it does not say."""
    try:
        if body[:1] != b"[":
            return _decode_one(body).counts() or _UNKNOWN
        batch = _decode_many(body)  # of native requests
    except msgspec.MsgspecError:
        return _UNKNOWN
    return _sum([counts for answer in batch if (counts := answer.counts()) is not None])


class StreamedAnswer:
    """A stream of server-sent events, of which the last ones are read at the end."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._trim_at = TRIM_AT_BYTES
        self._let_go = 0  # events that are kept no more
        self._events: list[bytes] | None = None  # the last ones, once the stream has ended
        self._told: AnswerCounts | None = None  # of those, once they have been asked for

    def feed(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size < self._trim_at:
            return
        if len(data) < TRIM_AT_BYTES // 2 or self._size >= TRIM_FAST_AT_BYTES:
            self._trim()

    def is_whole(self) -> bool:
        """A finish, an error of the worker's own, or the end marker was the last to come."""
        events = self._last_events()
        if sse.DONE_DATA in events:
            return True
        return any(answer.finishes for answer in map(_read_event, events) if answer is not None)

    def counts(self) -> AnswerCounts:
        if self._told is None:
            self._told = self._read_counts()
        return self._told

    def counts_so_far(self) -> AnswerCounts:
        """As the worker told on the way; else a token an event, which is what engines send."""
        told = self.counts()
        if told.completion is not None:
            return told
        return AnswerCounts(completion=self._let_go + _count_events(b"".join(self._parts)))

    def _read_counts(self) -> AnswerCounts:
        for event in reversed(self._last_events()):
            if event != sse.DONE_DATA and (answer := _read_event(event)) is not None:
                counts = answer.counts()
                if counts is not None:
                    return counts
        return _UNKNOWN

    def _last_events(self) -> list[bytes]:
        if self._events is None:
            self._events = _events_of(_last_of(b"".join(self._parts)))
        return self._events

    def _trim(self) -> None:
        """Let go of what lies before the last events. Amortised O(1) a byte."""
        stream = b"".join(self._parts)
        kept = _last_of(stream)
        self._let_go += _count_events(stream[: len(stream) - len(kept)])
        if len(kept) > MAX_READ_BYTES:
            kept = kept[-TRIM_AT_BYTES:]
        self._parts = [kept]
        self._size = len(kept)
        # A few very long events are not searched again for every piece that follows.
        self._trim_at = max(TRIM_AT_BYTES, 2 * self._size)


def _last_of(stream: bytes) -> bytes:
    """The last KEPT_EVENTS whole events of a stream, and what is begun of the next."""
    if b"\r" in stream:
        ends = [match.end() for match in _BLANK_LINE.finditer(stream)]
        return stream[ends[-KEPT_EVENTS - 1] :] if len(ends) > KEPT_EVENTS else stream
    older, *last = stream.rsplit(b"\n\n", KEPT_EVENTS + 1)
    return stream[len(older) + 2 :] if len(last) > KEPT_EVENTS else stream


def _events_of(stream: bytes) -> list[bytes]:
    """The data of each event; the end of the stream may have cut the last one short of its end."""
    events = []
    if b"\r" not in stream:
        # As engines write them: one line each.
        for event in stream.split(b"\n\n"):
            if event.startswith(b"data: ") and b"\n" not in event:
                events.append(event[6:])
            elif event:
                break
        else:
            return events
    return list(sse.SseScanner().feed(stream + b"\n\n"))


def _count_events(stream: bytes) -> int:
    if b"\r" in stream:
        return sum(1 for _ in _BLANK_LINE.finditer(stream))
    return len(_find_blank_lines(stream))


def _read_event(event: bytes) -> _Event | None:
    try:
        return _decode_event(event)
    except msgspec.MsgspecError:
        return None


def _sum(counts: list[AnswerCounts]) -> AnswerCounts:
    """Of a batch; a figure that one answer lacks is unknown for all."""
    return AnswerCounts(
        prompt=_add([one.prompt for one in counts]),
        cached=_add([one.cached for one in counts]),
        completion=_add([one.completion for one in counts]),
    )


def _add(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
