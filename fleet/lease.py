"""One attempt of one request at one worker: it owns what the books count for it."""

from enum import StrEnum

import msgspec

from radixgate.fleet.identity import WorkerIdentity
from radixgate.fleet.worker_record import WorkerRecord
from radixgate.policies.base import Choice
from radixgate.radix_mirror.mirror import Placement, RadixMirror


class Outcome(StrEnum):
    """How an attempt ended."""

    OK = "ok"
    FAILED = "failed"  # the worker broke off
    ABORTED = "aborted"  # the client left
    REFUSED = "refused"  # the worker answered with a client error


class Stake(msgspec.Struct, frozen=True):
    """What a lease has entered in the books, and takes out again."""

    prompt_tokens: int
    predicted_cached_tokens: int
    predicted_ttft_s: float
    blocks: int  # of the prompt, in the worker's mirror

    @property
    def uncached_tokens(self) -> int:
        return self.prompt_tokens - self.predicted_cached_tokens


class Lease:
    """Entered when made; left exactly once, whatever is called how often and in which order."""

    __slots__ = ("_closed", "_computing", "_mirror", "_placement", "_record", "_stake", "choice")

    def __init__(
        self,
        record: WorkerRecord,
        choice: Choice,
        stake: Stake,
        mirror: RadixMirror,
        placement: Placement | None,
    ) -> None:
        self._record = record
        self._stake = stake
        self._mirror = mirror
        self._placement = placement
        self._computing = True
        self._closed = False
        self.choice = choice
        record.in_flight += 1
        record.tokens_in_flight += stake.prompt_tokens
        record.uncached_tokens_in_flight += stake.uncached_tokens

    @property
    def worker(self) -> WorkerIdentity:
        return self._record.identity

    @property
    def predicted_cached_tokens(self) -> int:
        return self._stake.predicted_cached_tokens

    @property
    def predicted_ttft_s(self) -> float:
        return self._stake.predicted_ttft_s

    def first_output(self) -> None:
        """The prompt is computed: its tokens queue no more. Later calls do nothing."""
        if not self._computing:
            return
        self._end_computing()
        if self._placement:
            self._mirror.answered(self._placement)

    def close(self, outcome: Outcome, cached_tokens: int | None = None) -> None:
        """The attempt ended. `cached_tokens` as the reply told; None: it did not. Idempotent."""
        if self._closed:
            return
        self._closed = True
        never_computed = outcome in (Outcome.FAILED, Outcome.REFUSED) or (
            outcome is Outcome.ABORTED and self._computing
        )
        if self._computing:
            self._end_computing()
        self._record.in_flight -= 1
        self._record.tokens_in_flight -= self._stake.prompt_tokens
        if self._placement and never_computed:
            self._mirror.withdraw(self._placement)
        elif self._placement:
            self._mirror.settle(self._placement, self._cached_blocks(cached_tokens))
        if outcome is Outcome.OK and cached_tokens is not None:
            self._record.drift.add(self._stake.predicted_cached_tokens, cached_tokens)

    def _end_computing(self) -> None:
        self._computing = False
        self._record.uncached_tokens_in_flight -= self._stake.uncached_tokens

    def _cached_blocks(self, cached_tokens: int | None) -> int | None:
        if cached_tokens is None:
            return None
        key, stake = self._record.identity.mirror, self._stake
        return key.depth_of(cached_tokens, stake.blocks, stake.prompt_tokens)
