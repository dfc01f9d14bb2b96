"""Notes each decision of a fleet and how it went, for whoever puts it in words and on disk."""

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from radixgate.clock import Clock
from radixgate.fleet.ask import Ask
from radixgate.fleet.decision_lines import (
    VERSION,
    Columns,
    DecisionLine,
    Line,
    OutcomeLine,
    StartLine,
    encode_line,
    packed,
)
from radixgate.fleet.lease import Lease, Outcome
from radixgate.fleet.lineup import block_tokens_of
from radixgate.fleet.rule import Rule
from radixgate.policies.base import Candidates, Choice

_SESSION_BYTES = 8
# What a note holds in memory: itself, a block id, and a worker's row.
_NOTE_BYTES, _BLOCK_BYTES, _ROW_BYTES = 1_000, 8, 300


class Note(msgspec.Struct, frozen=True):
    """Something to be written, not yet in words."""

    line: Callable[[], Line]
    size: int  # bytes that it holds, about

    def encode(self) -> bytes:
        """The line, with its end; from any thread."""
        return encode_line(self.line())


class Journal:
    """Hands a note of each decision to `put`, and another when its lease ends.

    Used on one thread. What a note holds is not changed afterwards.
    """

    def __init__(
        self, put: Callable[[Note], None], clock: Clock, rule: Rule, *, run: bytes, epoch_s: float
    ) -> None:
        """`run`: 16 random bytes; they name the run, and sessions are digested with them.
        `epoch_s`: what makes a time of the clock one since the epoch."""
        self._put = put
        self._clock = clock
        self._epoch_s = epoch_s
        self._key = run
        self._run = hashlib.blake2b(run, digest_size=6).hexdigest()
        self._number = 0
        self._rule = rule
        self.begin(rule)

    def begin(self, rule: Rule) -> None:
        """From now on this decides."""
        self._rule = rule
        line = self._start(rule.seed)
        self._put(Note(lambda: line, _NOTE_BYTES))

    def heading(self) -> StartLine:
        """The first line of a file that goes on where another ended. From any thread."""
        return self._start(None)

    def decided(
        self,
        ask: Ask,
        model: str,
        candidates: Candidates,
        shares: Sequence[float],
        choice: Choice,
        predicted_ttft_s: float,
    ) -> "Follow":
        """O(candidates). The lists are copied here, as their owner may use them again."""
        self._number += 1
        now = self._clock.now()
        line = partial(
            _decision_line,
            run=self._run,
            n=self._number,
            at=now + self._epoch_s,
            policy=self._rule.policy,
            model=model,
            ask=ask,
            session=self._digest(ask.session),
            columns=_columns(candidates, shares, choice),
            reason=choice.branch,
            chosen=candidates.ids[choice.index],
            predicted_ttft_s=predicted_ttft_s,
        )
        blocks = sum(map(len, ask.blocks.values()))
        self._put(Note(line, _NOTE_BYTES + blocks * _BLOCK_BYTES + len(candidates) * _ROW_BYTES))
        return Follow(self, self._number, now)

    def ended(self, follow: "Follow", outcome: Outcome, cached_tokens: int | None) -> None:
        """The lease of that decision is over."""
        line = OutcomeLine(
            run=self._run,
            n=follow.number,
            outcome=outcome.value,
            cached_tokens=cached_tokens,
            ttft_s=None if follow.first_s is None else follow.first_s - follow.decided_s,
            e2e_s=self._clock.now() - follow.decided_s,
        )
        self._put(Note(lambda: line, _NOTE_BYTES))

    def now(self) -> float:
        return self._clock.now()

    def _start(self, seed: int | None) -> StartLine:
        rule = self._rule
        at = self._clock.now() + self._epoch_s
        return StartLine(VERSION, self._run, at, rule.policy, rule.settings, seed)

    def _digest(self, session: str | None) -> str | None:
        if not session:
            return None
        data = session.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, digest_size=_SESSION_BYTES, key=self._key).hexdigest()


class Follow:
    """One decision whose lease is not over."""

    __slots__ = ("decided_s", "ended", "first_s", "journal", "number")

    def __init__(self, journal: Journal, number: int, decided_s: float) -> None:
        self.journal = journal
        self.number = number
        self.decided_s = decided_s  # on the journal's clock
        self.first_s: float | None = None  # None: no output yet
        self.ended = False


class FollowedLease(Lease):
    """A lease whose first output and end are noted."""

    __slots__ = ("_follow",)

    def follow(self, follow: Follow) -> None:
        """Before anything else is called."""
        self._follow = follow

    def first_output(self) -> None:
        if self._follow.first_s is None:
            self._follow.first_s = self._follow.journal.now()
        super().first_output()

    def close(self, outcome: Outcome, cached_tokens: int | None = None) -> None:
        follow = self._follow
        if not follow.ended:
            follow.ended = True
            follow.journal.ended(follow, outcome, cached_tokens)
        super().close(outcome, cached_tokens)


def _columns(candidates: Candidates, shares: Sequence[float], choice: Choice) -> Columns:
    return Columns(
        worker=list(candidates.ids),
        cached_tokens=list(candidates.read_cached_tokens()),
        recent_share=list(shares),
        requests_in_flight=list(candidates.requests_in_flight),
        uncached_tokens_in_flight=list(candidates.uncached_tokens_in_flight),
        running=list(candidates.running),
        waiting=list(candidates.waiting),
        queued_uncached_tokens=list(candidates.queued_uncached_tokens),
        queued_elsewhere=list(candidates.queued_elsewhere),
        kv_share_used=list(candidates.kv_share_used),
        prefill_tokens_per_s=list(candidates.prefill_tokens_per_s),
        decode_step_s=list(candidates.read_decode_step_s()),
        score=[float(score) for score in choice.explain()],
    )


def _decision_line(
    *,
    run: str,
    n: int,
    at: float,
    policy: str,
    model: str,
    ask: Ask,
    session: str | None,
    columns: Columns,
    reason: str,
    chosen: str,
    predicted_ttft_s: float,
) -> DecisionLine:
    """In the writer's thread."""
    key, blocks = next(iter(ask.blocks.items()), (None, ()))
    return DecisionLine(
        run=run,
        n=n,
        at=at,
        policy=policy,
        model=model,
        prompt_tokens=ask.prompt_tokens,
        session=session,
        group=ask.group,
        tenant=ask.tenant,
        priority=ask.priority,
        fingerprint=ask.fingerprint,
        blocks=packed(blocks),
        candidates=columns,
        chosen=chosen,
        reason=reason,
        predicted_ttft_s=predicted_ttft_s,
        block_tokens=0 if key is None else block_tokens_of(key),
    )
