"""When the claims of sent prompts are over, if nobody ends them before."""

import heapq
import math
from collections.abc import Sized

from radixgate.radix_mirror.claims import Claim
from radixgate.radix_mirror.sent_prompts import SentPrompts


class TimedPrompts:
    """Claims that leave by themselves, soonest first.

    How many there may be is the mirror's budget; beyond it the nearest deadline leaves early.
    """

    def __init__(self, sent: SentPrompts) -> None:
        self.sent = sent
        self._heap: list[tuple[float, int, Claim]] = []

    @property
    def entries(self) -> Sized:
        """Its claims, to be counted without a Python frame."""
        return self._heap

    @property
    def soonest(self) -> float:
        """The nearest deadline."""
        return self._heap[0][0] if self._heap else math.inf

    def set(self, claim: Claim, deadline: float) -> None:
        """`deadline`: on the mirror's clock, seconds. O(log claims)."""
        if not claim.runs and not claim.pieces:
            return
        heapq.heappush(self._heap, (deadline, claim.serial, claim))

    def __len__(self) -> int:
        """Claims, released ones among them whose deadline has not come."""
        return len(self._heap)

    def release_soonest(self) -> bool:
        """The nearest deadline comes now; False: there is none."""
        if not self._heap:
            return False
        self.sent.release(heapq.heappop(self._heap)[2])
        return True

    def expire(self, now: float) -> None:
        """Release what is due. O(1) if nothing is."""
        while self._heap and self._heap[0][0] <= now:
            self.sent.release(heapq.heappop(self._heap)[2])
