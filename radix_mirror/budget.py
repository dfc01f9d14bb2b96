"""What a mirror's entries weigh, and what leaves when they weigh too much."""

import msgspec

# Measured with benchmarks/mirror.py, table and object overhead included; blocks by kind.
REPORTED_BYTES = 90
CLAIMED_BYTES = 90
CLAIMED_IN_PIECE_BYTES = 13  # of a piece that is claimed whole, the prompt included
APPROXIMATE_BYTES = 170
# A block of the pieces of earlier walks.
REMEMBERED_BYTES = 127
# Where a walk left the workers: each one's depth, and all else of that path.
DEPTH_BYTES = 8
PATH_BYTES = 480
# Of one prompt that is expected, besides its blocks: the claim, its deadline, its list of blocks.
CLAIM_BYTES = 800


class MirrorWeight(msgspec.Struct, frozen=True, gc=False):
    """How much of each kind one mirror holds. A Struct: it is made whenever something comes."""

    reported: int  # blocks that workers store
    claimed: int  # blocks that were sent and not reported yet; of a piece that is claimed, all
    claims: int  # prompts of those
    approximate: int  # blocks believed of workers that report nothing
    remembered: int = 0  # blocks of earlier walks
    path_bytes: int = 0  # and where they left the workers
    in_pieces: int = 0  # of the claimed blocks, those in claimed pieces

    @property
    def bytes(self) -> int:
        return (
            self.reported * REPORTED_BYTES
            + (self.claimed - self.in_pieces) * CLAIMED_BYTES
            + self.in_pieces * CLAIMED_IN_PIECE_BYTES
            + self.claims * CLAIM_BYTES
            + self.approximate * APPROXIMATE_BYTES
            + self.remembered * REMEMBERED_BYTES
            + self.path_bytes
        )
