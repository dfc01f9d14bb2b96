"""A prefix that many prompts share: should one more worker come to hold it?"""

from collections.abc import Sequence

from radixgate.policies.base import Candidates

# Among 128 recent prompts, a share seen in fewer than a thirty-second of the workers is chance. It
# matters to fleets of more than 80 workers.
CHANCE_SHARE_A_WORKER = 1 / 4_096


def is_scarce(candidates: Candidates, best: int, holders: int) -> bool:
    """Fewer workers, `holders`, have as much of the prompt cached as this one has than its share of
    the recent prompts calls for."""
    workers = len(candidates.ids)
    if holders == workers:
        return False
    share = candidates.read_recent_share(best)
    return share >= CHANCE_SHARE_A_WORKER * workers and holders < int(share * workers + 0.5)


def holders_of(cached: Sequence[int], least: int, most: int) -> int:
    """How many have so much cached, or more; `most`: the largest of `cached`."""
    if least == most:
        return cached.count(most)
    return len([tokens for tokens in cached if tokens >= least])
