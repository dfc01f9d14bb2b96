"""A prefix that many prompts share: should one more worker come to hold it?"""

from collections.abc import Sequence

from radixgate.policies.base import Candidates

# Among 128 recent prompts, a share seen in fewer than a thirty-second of the workers is chance. It
# matters to fleets of more than 80 workers.
CHANCE_SHARE_A_WORKER = 1 / 4_096


def is_scarce(candidates: Candidates, cached: Sequence[int], best: int, most: int) -> bool:
    """Fewer workers hold what this one has of the prompt than its share of the recent prompts calls
    for. `most`: the largest of `cached`."""
    here = cached[best]
    holders = cached.count(here)
    if here < most:
        holders += len([tokens for tokens in cached if tokens > here])
    workers = len(cached)
    if holders == workers:
        return False
    share = candidates.read_recent_share(best)
    return share >= CHANCE_SHARE_A_WORKER * workers and holders < int(share * workers + 0.5)
