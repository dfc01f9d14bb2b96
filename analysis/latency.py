"""The latency figures of one request, and the rates of many; each docstring is the formula."""

from collections.abc import Iterable
from itertools import pairwise

from radixgate.analysis.records import RequestRecord


def ttft_s(record: RequestRecord) -> float | None:
    """Time to first token: `t(first arrival) - t_dispatch`. None: no token came.

    An event without content and without a token (a role, a usage) is no arrival.
    """
    return _first_after(record, record.t_dispatch_s)


def response_ttft_s(record: RequestRecord) -> float | None:
    """As the user of an open loop waits: `t(first arrival) - t_eligible`. None: no token came."""
    return _first_after(record, record.t_eligible_s)


def e2e_s(record: RequestRecord) -> float:
    """End to end: `t(last token or finish reason) - t_dispatch`."""
    return record.t_last_s - record.t_dispatch_s


def response_e2e_s(record: RequestRecord) -> float:
    """End to end as the user of an open loop waits: `t(last) - t_eligible`."""
    return record.t_last_s - record.t_eligible_s


def schedule_lag_s(record: RequestRecord) -> float:
    """How late it was sent, whoever held it back: `t_dispatch - t_eligible`."""
    return record.t_dispatch_s - record.t_eligible_s


def tpot_s(record: RequestRecord) -> float | None:
    """Time per output token after the first:
    `(t(last arrival) - t(first arrival)) / (output tokens - 1)`. None: fewer than two tokens.
    """
    if record.output_tokens < 2 or not record.arrivals:
        return None
    seconds = record.arrivals[-1].at_s - record.arrivals[0].at_s
    return seconds / (record.output_tokens - 1)


def itl_gaps_s(record: RequestRecord) -> list[float]:
    """Inter-token latency by gap: `t(arrival k+1) - t(arrival k)`, however many tokens came."""
    return [late.at_s - early.at_s for early, late in pairwise(record.arrivals)]


def itl_tokens_s(record: RequestRecord) -> list[float]:
    """Inter-token latency by token: one value for each token after the first.

    The k tokens of an arrival share the gap before it, `gap / k` each; further tokens of the
    first arrival came with it and count 0. The values add up to the time between the first and
    the last token, so their mean is `tpot_s`.
    """
    if not record.arrivals:
        return []
    first = record.arrivals[0]
    values = [0.0] * (first.tokens - 1)
    since = first.at_s
    for arrival in record.arrivals[1:]:
        if arrival.tokens == 0:  # text of tokens counted before; its gap goes to the next token
            continue
        share = (arrival.at_s - since) / arrival.tokens
        values.extend([share] * arrival.tokens)
        since = arrival.at_s
    return values


def concurrency(records: Iterable[RequestRecord], duration_s: float) -> float:
    """Requests in flight on average (Little): `sum of e2e / duration`; 0 for no duration."""
    return rate(sum(e2e_s(record) for record in records), duration_s)


def rate(amount: float, duration_s: float) -> float:
    """`amount / duration`; 0 for no duration."""
    return amount / duration_s if duration_s > 0 else 0.0


def _first_after(record: RequestRecord, start_s: float) -> float | None:
    if not record.arrivals:
        return None
    return record.arrivals[0].at_s - start_s
