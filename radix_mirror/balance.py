"""What a mirror weighs against its budget, and what leaves when it is too much."""

from collections.abc import Sequence, Sized

from radixgate.radix_mirror.approximate import ApproximateBlocks
from radixgate.radix_mirror.budget import (
    APPROXIMATE_BYTES,
    CLAIM_BYTES,
    DEPTH_BYTES,
    PATH_BYTES,
    REMEMBERED_BYTES,
    MirrorWeight,
)
from radixgate.radix_mirror.pieces import Pieces
from radixgate.radix_mirror.timed_prompts import TimedPrompts


class Balance:
    """It is weighed when so much has come that it may be too much: a walk, and a prompt that is
    sent, count for the most that they can bring."""

    def __init__(
        self,
        stored: Sequence[Sized],
        deadlines: TimedPrompts,
        pieces: Pieces,
        approximate: ApproximateBlocks,
        budget_bytes: int,
    ) -> None:
        """`stored`: the blocks that workers have reported, by tier."""
        self._stored = stored
        self._deadlines = deadlines
        self._pieces = pieces
        self._approximate = approximate
        self._counted = deadlines.entries, pieces.entries
        self._budget_bytes = budget_bytes
        self._room = 0  # bytes that may come before it has to be weighed

    def weight(self) -> MirrorWeight:
        """O(1)."""
        reported, believed = sum(map(len, self._stored)), self._approximate.total
        claims, remembered = map(len, self._counted)
        sent, paths = self._deadlines.sent, self._pieces.paths.bytes
        whole = sent.blocks_in_pieces
        return MirrorWeight(
            reported, sent.one_by_one + whole, claims, believed, remembered, paths, whole
        )

    def walked(self, blocks: int, workers: int) -> None:
        """Along so many blocks, which may be remembered now."""
        self._room -= blocks * REMEMBERED_BYTES + workers * DEPTH_BYTES + PATH_BYTES
        if self._room < 0:
            self.keep()

    def sent(self, blocks: int) -> None:
        """A prompt of so many blocks that its worker may not have had."""
        self._room -= blocks * APPROXIMATE_BYTES + CLAIM_BYTES
        if self._room < 0:
            self.keep()

    def keep(self) -> None:
        """Earlier walks leave first, then the oldest beliefs and the nearest deadlines."""
        self._room = self._budget_bytes - self.weight().bytes
        if self._room >= 0:
            return
        self._pieces.clear()
        over = max(0, self.weight().bytes - self._budget_bytes)
        self._approximate.shrink(-(-over // APPROXIMATE_BYTES))
        while self.weight().bytes > self._budget_bytes and self._deadlines.release_soonest():
            pass

    def check(self) -> None:
        """Assert that it is weighed before it can be too much."""
        assert self._room <= max(0, self._budget_bytes - self.weight().bytes)
