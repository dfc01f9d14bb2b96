"""How many other workers of a run had something to do, while one of them did."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from radixgate.analysis.records import RequestRecord

_Spans = Sequence[tuple[float, float]]  # in order, none touches the next


class Neighbours:
    """A worker counts as busy from a request's sending to its last token. Times in seconds."""

    def __init__(self, by_worker: Mapping[str | None, Sequence[RequestRecord]]) -> None:
        """O(requests log requests)."""
        self._busy = {worker: _joined(records) for worker, records in by_worker.items()}

    def busy(self, worker: str | None, begins: float, ends: float) -> float:
        """Of the others, in the mean over this time; 0 of no time. O(log requests + spans in it) a
        worker."""
        if ends <= begins:
            return 0.0
        others = (spans for other, spans in self._busy.items() if other != worker)
        return sum(_within(spans, begins, ends) for spans in others) / (ends - begins)


def _joined(records: Sequence[RequestRecord]) -> _Spans:
    found: list[tuple[float, float]] = []
    for begins, ends in sorted((r.t_dispatch_s, r.t_last_s) for r in records):
        if found and begins <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], ends)
        else:
            found.append((begins, ends))
    return found


def _within(spans: _Spans, begins: float, ends: float) -> float:
    """Seconds of the spans from `begins` to `ends`."""
    seconds = 0.0
    for span in spans[bisect_left(spans, begins, key=lambda span: span[1]) :]:
        if span[0] >= ends:
            break
        seconds += min(ends, span[1]) - max(begins, span[0])
    return seconds
