"""Requests at each worker: those that we sent, or all that it reports if that is more."""

from collections.abc import Sequence

from radixgate.policies.base import Candidates

UNREPORTED = -1


def requests_there(candidates: Candidates) -> Sequence[int]:
    """Of at least one. O(1) if who made the candidates has compared them; else O(candidates), about
    30 ns each."""
    if candidates.requests_there:
        return candidates.requests_there
    own = candidates.requests_in_flight
    reported = reported_requests(candidates)
    if max(reported) <= 0:
        return own
    return [count if count > told else told for count, told in zip(own, reported, strict=True)]


def reported_requests(candidates: Candidates) -> Sequence[int]:
    """Running and waiting together; UNREPORTED of a worker that does not tell both.

    O(1) if who made the candidates has added them up.
    """
    if candidates.reported_requests:
        return candidates.reported_requests
    return [reported_at(candidates, place) for place in range(len(candidates))]


def reported_at(candidates: Candidates, place: int) -> int:
    """The same of one worker, from its columns. O(1)."""
    running, waiting = candidates.running[place], candidates.waiting[place]
    return UNREPORTED if running is None or waiting is None else running + waiting
