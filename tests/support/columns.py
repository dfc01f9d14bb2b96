"""Candidates for a policy, from what a test cares about; the rest is idle, cold and unreported."""

from collections.abc import Callable, Sequence

from radixgate.policies.base import Candidates, RouteRequest

PROMPT = RouteRequest(prompt_tokens=1_000)


def columns(
    count: int,
    *,
    cached: Sequence[int] | None = None,
    requests: Sequence[int] | None = None,
    uncached: Sequence[int] | None = None,
    reported: Sequence[int | None] | None = None,  # requests running there
    waiting: Sequence[int] | None = None,  # and waiting, where it reports
    elsewhere: Sequence[int | None] | None = None,  # uncached tokens of other gateways, reported
    speeds: Sequence[float | None] | None = None,
    kv_share: Sequence[float | None] | None = None,
    recent_share: Callable[[int], float] = lambda index: 0.0,
    ids: Sequence[str] | None = None,
) -> Candidates:
    reported = reported or [None] * count
    found = cached or [0] * count
    queued = waiting or [0] * count
    return Candidates(
        ids=ids or [f"w{n}" for n in range(count)],
        requests_in_flight=requests or [0] * count,
        uncached_tokens_in_flight=uncached or [0] * count,
        running=reported,
        waiting=[
            None if running is None else queued[index] for index, running in enumerate(reported)
        ],
        queued_uncached_tokens=[None if running is None else 0 for running in reported],
        queued_elsewhere=elsewhere or [None] * count,
        kv_share_used=kv_share or [None] * count,
        prefill_tokens_per_s=speeds or [None] * count,
        read_cached_tokens=lambda: found,
        read_recent_share=recent_share,
    )
