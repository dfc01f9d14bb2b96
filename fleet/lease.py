"""One attempt of one request at one worker: it owns what the books count for it."""

from enum import StrEnum

import msgspec

from radixgate.fleet.identity import WorkerIdentity
from radixgate.fleet.worker_record import WorkerRecord
from radixgate.policies.base import Choice
from radixgate.radix_mirror.mirror import Placement


class Outcome(StrEnum):
    """How an attempt ended."""

    OK = "ok"
    FAILED = "failed"  # the worker broke off
    ABORTED = "aborted"  # the client left
    REFUSED = "refused"  # the worker answered with a client error


# A member is looked up by a function call each time; this runs for every request.
_OK, _ABORTED = Outcome.OK, Outcome.ABORTED
_NEVER_COMPUTED = frozenset((Outcome.FAILED, Outcome.REFUSED))


class Stake(msgspec.Struct, frozen=True, gc=False):
    """What a lease has entered in the books, and takes out again."""

    prompt_tokens: int
    predicted_cached_tokens: int
    predicted_ttft_s: float
    blocks: int  # of the prompt, in the worker's mirror


class Lease:
    """Entered when made; left exactly once, whatever is called how often and in which order."""

    __slots__ = (
        "_closed",
        "_placement",
        "_record",
        "_uncached_tokens",
        "choice",
        "number",
        "stake",
        "worker",
    )

    def __init__(
        self,
        record: WorkerRecord,
        choice: Choice,
        stake: Stake,
        placement: Placement | None,
    ) -> None:
        self._record = record
        self._placement = placement
        self._closed = False
        self.choice = choice
        self.stake = stake
        self.worker: WorkerIdentity = record.identity
        tokens = stake.prompt_tokens
        uncached = tokens - stake.predicted_cached_tokens
        # What the worker computes before its first output; None: that has come, or never will.
        self._uncached_tokens: int | None = uncached
        counts, place = record.counts, record.place
        counts.add(place, 1)
        counts.uncached[place] += uncached
        # Rises from lease to lease; the worker tells up to which it has seen them.
        self.number = record.own.enter(uncached)
        record.tokens_in_flight += tokens
        if placement is None:
            record.shared.moved(record.identity.id)

    @property
    def predicted_cached_tokens(self) -> int:
        return self.stake.predicted_cached_tokens

    @property
    def predicted_ttft_s(self) -> float:
        return self.stake.predicted_ttft_s

    def first_output(self) -> None:
        """The prompt is computed: its tokens queue no more. Later calls do nothing."""
        if self._uncached_tokens is None:
            return
        record = self._record
        record.counts.uncached[record.place] -= record.own.leave(self.number, self._uncached_tokens)
        self._uncached_tokens = None
        if self._placement is not None:
            record.shared.mirror.answered(self._placement)
        else:
            record.shared.moved(record.identity.id)

    def close(self, outcome: Outcome, cached_tokens: int | None = None) -> None:
        """The attempt ended. `cached_tokens` as the reply told; None: it did not. Idempotent."""
        if self._closed:
            return
        self._closed = True
        record, uncached = self._record, self._uncached_tokens
        counts, place = record.counts, record.place
        if uncached is not None:
            counts.uncached[place] -= record.own.leave(self.number, uncached)
            self._uncached_tokens = None
        counts.add(place, -1)
        record.tokens_in_flight -= self.stake.prompt_tokens
        if self._placement is None:
            record.shared.moved(record.identity.id)
        else:
            mirror = record.shared.mirror
            left_early = outcome is _ABORTED and uncached is not None
            if left_early or outcome in _NEVER_COMPUTED:
                mirror.withdraw(self._placement)
            else:
                mirror.settle(self._placement, self._cached_blocks(cached_tokens))
        if cached_tokens is not None and outcome is _OK:
            record.drift.add(self.stake.predicted_cached_tokens, cached_tokens)

    def _cached_blocks(self, cached_tokens: int | None) -> int | None:
        """None where the reply does not show that the worker holds less than is believed."""
        key, stake = self._record.identity.mirror, self.stake
        # In tokens, as the reply is: rounded down to blocks once more, one that is as predicted
        # would be less than was predicted, and where that is one block, none.
        if cached_tokens is None or 2 * cached_tokens >= stake.predicted_cached_tokens:
            return None
        return key.depth_of(cached_tokens, stake.blocks, stake.prompt_tokens)
