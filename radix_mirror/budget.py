"""What a mirror's entries weigh, and what leaves when they weigh too much."""

from dataclasses import dataclass

# Measured with benchmarks/mirror.py, table and object overhead included; blocks by kind.
REPORTED_BYTES = 90
CLAIMED_BYTES = 90
APPROXIMATE_BYTES = 170
# A block of the pieces of earlier walks.
REMEMBERED_BYTES = 125
# Of one prompt that is expected, besides its blocks: the claim, its deadline, its list of blocks.
CLAIM_BYTES = 800


@dataclass(frozen=True, slots=True)
class MirrorWeight:
    """How much of each kind one mirror holds."""

    reported: int  # blocks that workers store
    claimed: int  # blocks that were sent and not reported yet
    claims: int  # prompts of those
    approximate: int  # blocks believed of workers that report nothing
    remembered: int = 0  # blocks of earlier walks

    @property
    def bytes(self) -> int:
        return (
            self.reported * REPORTED_BYTES
            + self.claimed * CLAIMED_BYTES
            + self.claims * CLAIM_BYTES
            + self.approximate * APPROXIMATE_BYTES
            + self.remembered * REMEMBERED_BYTES
        )
