"""What the gateway reads out of an answer that it passes on untouched: its end and its counts.

A stream is not parsed event by event: its pieces are kept aside and, once it has ended, the last
few events are read. So a chunk costs an append, however the worker cut it.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from msgspec import structs

from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.workers.answer_json import UNKNOWN, Event, counts_of, read_event
from radixgate.gateway.workers.let_go_choices import LetGoChoices, tells_of_choices
from radixgate.gateway.workers.stream_ends import data_lines, plain_finish
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

    def told_of_choices(self) -> Sequence[bytes]:
        """The data of a stream's last events, of which the last may be cut, and before them of the
        last that told of a choice which those may not show. Once it has ended."""
        ...


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
            return UNKNOWN
        return counts_of(self._parts[0] if len(self._parts) == 1 else b"".join(self._parts))

    def counts_so_far(self) -> AnswerCounts:
        return UNKNOWN

    def told_of_choices(self) -> Sequence[bytes]:
        return ()


class StreamedAnswer:
    """A stream of server-sent events, of which the last ones are read at the end."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._trim_at = TRIM_AT_BYTES
        self._let_go = 0  # events that are kept no more
        self._choices: LetGoChoices | None = None  # as those told of them; None: they have not
        self._events: list[bytes] | None = None  # the last ones, once the stream has ended
        self._read: list[Event] | None = None  # what they say, once it has been asked for
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
        if self._ends_plainly() or sse.DONE_DATA in self.last_events():
            return True
        return any(answer.finishes for answer in self._answers())

    def is_good(self) -> bool:
        """The model's own finish was among the last: so there has been output, and no error."""
        if self._ends_plainly():
            return True
        answers = self._answers()
        for answer in answers:
            if answer.error_status:
                return False
        # The last but one, as a rule: what brings the usage stands behind it.
        return any(answer.finishes for answer in reversed(answers))

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

    def _ends_plainly(self) -> bool:
        """With a finish, the end marker, and no word of its cost: as most do, in a third of the
        time that reading the last events takes."""
        finish = plain_finish(b"".join(self._parts))
        read = None if finish is None else read_event(finish)
        if read is None or not read.finishes:
            return False
        self._told = UNKNOWN
        return True

    def _read_counts(self) -> AnswerCounts:
        answers = self._answers()
        told = (counts for one in reversed(answers) if (counts := one.counts()) is not None)
        counts = next(told, UNKNOWN)
        status = next((one.error_status for one in answers if one.error_status), 0)
        return structs.replace(counts, error_status=status) if status else counts

    def _answers(self) -> list[Event]:
        if self._read is None:
            events = [event for event in self.last_events() if event != sse.DONE_DATA]
            self._read = [read for read in map(read_event, events) if read is not None]
        return self._read

    def told_of_choices(self) -> Sequence[bytes]:
        before = [] if self._choices is None else self._choices.last_events()
        return [*before, *self.last_events()]

    def last_events(self) -> Sequence[bytes]:
        """Their data; the last may be cut. Once it has ended."""
        if self._events is None:
            self._events = _events_of(_last_of(b"".join(self._parts)))
        return self._events

    def _trim(self) -> None:
        """Let go of what lies before the last events. Amortised O(1) a byte."""
        stream = b"".join(self._parts)
        kept = _last_of(stream)
        let_go = stream[: len(stream) - len(kept)]
        self._let_go += _count_events(let_go)
        if tells_of_choices(let_go):
            self._choices = self._choices or LetGoChoices()
            self._choices.read(_events_of(let_go))
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
    """Whole events, of one line of data each."""
    if b"\r" in stream:
        stream = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not stream.endswith(b"\n\n"):
        stream = stream[: stream.rfind(b"\n\n") + 2]
    return data_lines(stream)
