"""The steady part of a run, and whether Little's law holds in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from radixgate.analysis import latency
from radixgate.analysis.records import RequestRecord
from radixgate.analysis.run_span import last_dispatch_s, run_span_s

_BUCKETS = 100
_STEADY_SHARE = 0.8
_WARM_SHARE = 0.1
_LITTLE_OFF = 0.02

RULES = {
    True: "from a tenth of the span of intended times to its end",
    False: "the longest run of hundredths with at least 80 % of the 90th percentile of "
    "requests in flight",
}


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a run. Requests in flight are counted from their dispatch to their last token."""

    start_s: float
    end_s: float
    rule: str
    requests: int  # dispatched in it
    request_rate: float  # answers that ended in it, a second
    output_token_rate: float  # tokens that came in it, a second
    in_flight: float  # on average, by sweeping over starts and ends
    little_in_flight: float  # rate of dispatch times mean E2E of those dispatched
    steady: bool  # both agree within 2 %

    @property
    def little_error(self) -> float:
        """How far off the two are, as a share."""
        return self.little_in_flight / self.in_flight - 1.0 if self.in_flight > 0 else 0.0


def steady_window(records: Sequence[RequestRecord], *, open_loop: bool) -> Window | None:
    """None: nothing succeeded, or the run took no time."""
    good = [record for record in records if record.ok]
    if not good:
        return None
    start_s, end_s = run_span_s(records)
    if not end_s > start_s:
        return None
    if open_loop:
        last_s = last_dispatch_s(records)
        first_s = start_s + _WARM_SHARE * (last_s - start_s)
        return _window(good, first_s, last_s, RULES[True]) if last_s > first_s else None
    return _window(good, *_fullest(good, start_s, end_s), RULES[False])


def in_flight_over(
    records: Sequence[RequestRecord], start_s: float, end_s: float, buckets: int
) -> list[float]:
    """Requests in flight on average in each of `buckets` equal parts. O(records * parts)."""
    width_s = (end_s - start_s) / buckets
    totals = [0.0] * buckets
    for record in records:
        first = max(0, int((record.t_dispatch_s - start_s) / width_s))
        last = min(buckets - 1, int((record.t_last_s - start_s) / width_s))
        for place in range(first, last + 1):
            low = start_s + place * width_s
            totals[place] += _overlap(record, low, low + width_s)
    return [total / width_s for total in totals]


def _window(good: Sequence[RequestRecord], start_s: float, end_s: float, rule: str) -> Window:
    length_s = end_s - start_s
    sent = [record for record in good if start_s <= record.t_dispatch_s < end_s]
    in_flight = sum(_overlap(record, start_s, end_s) for record in good) / length_s
    little = sum(map(latency.e2e_s, sent)) / length_s
    tokens = sum(a.tokens for r in good for a in r.arrivals if start_s <= a.at_s < end_s)
    return Window(
        start_s=start_s,
        end_s=end_s,
        rule=rule,
        requests=len(sent),
        request_rate=sum(start_s <= r.t_last_s < end_s for r in good) / length_s,
        output_token_rate=tokens / length_s,
        in_flight=in_flight,
        little_in_flight=little,
        steady=in_flight > 0 and abs(little / in_flight - 1.0) <= _LITTLE_OFF,
    )


def _fullest(good: Sequence[RequestRecord], start_s: float, end_s: float) -> tuple[float, float]:
    counts = in_flight_over(good, start_s, end_s, _BUCKETS)
    bar = _STEADY_SHARE * sorted(counts)[int(0.9 * (_BUCKETS - 1))]
    # Borders of the runs of full buckets: each run lies between two buckets that are not full.
    gaps = [-1, *(place for place, count in enumerate(counts) if count < bar), _BUCKETS]
    before, after = max(pairwise(gaps), key=lambda pair: pair[1] - pair[0])
    width_s = (end_s - start_s) / _BUCKETS
    return start_s + (before + 1) * width_s, start_s + after * width_s


def _overlap(record: RequestRecord, start_s: float, end_s: float) -> float:
    return max(0.0, min(record.t_last_s, end_s) - max(record.t_dispatch_s, start_s))
