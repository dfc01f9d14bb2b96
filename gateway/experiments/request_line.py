"""From a watched request that has ended to the line that is recorded of it."""

from radixgate.analysis.experiments.records import RequestLine, Result
from radixgate.analysis.experiments.schedule import bucket_of
from radixgate.fleet.fleet import Outcome
from radixgate.gateway.experiments.logbook import Logbook
from radixgate.gateway.experiments.units import UnitOf
from radixgate.gateway.experiments.watched_request import Label, WatchedRequest


def result_of(request: WatchedRequest) -> Result | None:
    """None: the request itself was wrong, which says nothing of a policy."""
    if request.left:
        return None if request.lease is None else "aborted"
    if request.lease is None:
        return "rejected" if request.ask is not None and request.status >= 500 else None
    if request.outcome is Outcome.OK:
        return "ok"
    return None if request.outcome is Outcome.REFUSED and request.status < 500 else "failed"


def line_of_request(
    logbook: Logbook, request: WatchedRequest, label: Label, result: Result, unit_of: UnitOf
) -> RequestLine:
    """Of one whose result is known."""
    lease, counts, ended_at = request.lease, request.counts, request.ended_at
    assert ended_at is not None
    sent_at = ended_at if request.dispatched_at is None else request.dispatched_at
    first_at = request.first_token_at if request.streams else None
    named = None if request.ask is None else unit_of(request.ask)
    return RequestLine(
        logbook.name,
        block=label.block,
        arm=logbook.arm(label.arm),
        washout=label.washout,
        t_dispatch_s=logbook.at_s(sent_at),
        outcome=result,
        ttft_s=None if first_at is None else first_at - sent_at,
        e2e_s=ended_at - sent_at if result == "ok" else None,
        tpot_s=_tpot_s(request) if result == "ok" else None,
        prompt_tokens=_prompt_tokens(request),
        cached_tokens=None if counts is None else counts.cached,
        output_tokens=None if counts is None else counts.completion,
        predicted_cached_tokens=None if lease is None else lease.predicted_cached_tokens,
        worker=None if lease is None else lease.worker.id,
        unit=None if named is None else bucket_of(logbook.salt, named),
        held_s=request.held_s,
        weights=None if lease is None else lease.worker.weights_id,
    )


def _tpot_s(request: WatchedRequest) -> float | None:
    tokens = None if request.counts is None else request.counts.completion
    first_at, last_at = request.first_token_at, request.last_piece_at
    if not request.streams or tokens is None or tokens < 2 or first_at is None or last_at is None:
        return None
    return (last_at - first_at) / (tokens - 1)


def _prompt_tokens(request: WatchedRequest) -> int | None:
    """As the worker counted them, else as the fleet was asked."""
    if request.counts is not None and request.counts.prompt is not None:
        return request.counts.prompt
    return None if request.ask is None else request.ask.prompt_tokens
