"""What follows from the head of a worker's answer, found once for all answers under that head."""

from collections.abc import Callable

import msgspec

from radixgate.gateway.attempt.attempt import Headers, WholeHead
from radixgate.gateway.heads import hop_headers, http_answer
from radixgate.gateway.settings.header_rules import Crosses
from radixgate.gateway.workers.answer_reading import AnswerReader, StreamedAnswer, WholeAnswer

# Heads that an answer came under lately; all are forgotten when there are more.
_MAX_HEADS = 256

_MakeReader = Callable[[], AnswerReader]


class SeenHead(msgspec.Struct, frozen=True, gc=False):
    """Nothing in it is ever changed."""

    headers: Headers  # as the worker sent them: they stay, as they are found by their id
    passed: Headers  # what clients get of them
    reader: _MakeReader | None  # None: the answer is not read
    whole: WholeHead | None  # of an answer in one piece; None: it says nothing of its cost,
    # or its length is lost on the way


class SeenHeads:
    """Of one worker."""

    def __init__(self, crosses: Crosses) -> None:
        """`crosses`: which headers clients get."""
        self._crosses = crosses
        # A head that comes again is the same list. By its id, which is its own while it is kept.
        self._seen: dict[int, SeenHead] = {}

    def of(self, status: int, headers: Headers) -> SeenHead:
        """O(1) for headers that came before, which are not looked at then."""
        known = self._seen.get(id(headers))
        if known is None:
            if len(self._seen) >= _MAX_HEADS:
                self._seen.clear()
            passed = hop_headers.to_client(headers, self._crosses)
            reader = _reader_for(status, headers)
            whole = _whole_head(status, passed, reader)
            known = self._seen[id(headers)] = SeenHead(headers, passed, reader, whole)
        return known


def _reader_for(status: int, headers: Headers) -> _MakeReader | None:
    """Only a successful answer in the clear says what it cost."""
    if not 200 <= status < 300:
        return None
    kind = (hop_headers.find(headers, b"content-type") or b"").lower()
    encoding = hop_headers.find(headers, b"content-encoding")
    if encoding is not None and encoding.lower() != b"identity":
        return None
    if kind.startswith(b"text/event-stream"):
        return StreamedAnswer
    return WholeAnswer if kind.startswith(b"application/json") else None


def _whole_head(status: int, passed: Headers, reader: _MakeReader | None) -> WholeHead | None:
    framed, streams = http_answer.is_framed(status, passed), reader is StreamedAnswer
    if reader is None or not (framed or streams):
        return None
    return WholeHead(status, passed, http_answer.head_lines(status, passed), framed, streams)
