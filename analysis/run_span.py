"""From when to when a run is counted: every rate is of this time, and no other."""

from collections.abc import Sequence

from radixgate.analysis.records import ABANDONED, RequestRecord


def run_span_s(records: Sequence[RequestRecord]) -> tuple[float, float]:
    """From the first dispatch to the end of the last success, or to the last dispatch if that is
    later; without a success it has no length. Dispatches that the client gave up end nothing.

    Not to the end of the last failure: one that hangs until its timeout would stretch the run and
    dilute every rate. Nor to the last success alone: a server that is gone half way through would
    be as fast as it was until then.
    """
    start_s = min((record.t_dispatch_s for record in records), default=0.0)
    ends_s = [record.t_last_s for record in records if record.ok]
    if not ends_s:
        return start_s, start_s
    return start_s, max(max(ends_s), last_dispatch_s(records))


def last_dispatch_s(records: Sequence[RequestRecord]) -> float:
    """Of what was offered, failed or not. Raises ValueError if nothing was."""
    return max(record.t_dispatch_s for record in records if record.failure != ABANDONED)
