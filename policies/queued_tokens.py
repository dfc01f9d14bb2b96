"""Prompt tokens that a worker has to compute before it begins with ours."""

from collections.abc import Sequence

from radixgate.policies.base import Candidates


def queued_tokens(candidates: Candidates) -> Sequence[int]:
    """Of each candidate: our own, which we know at once, and what it reports of other gateways."""
    if not any(candidates.queued_elsewhere):
        return candidates.uncached_tokens_in_flight
    return [
        own + (elsewhere or 0)
        for own, elsewhere in zip(
            candidates.uncached_tokens_in_flight, candidates.queued_elsewhere, strict=True
        )
    ]
