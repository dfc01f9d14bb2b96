"""The workers that may take a request, in the columns that a policy reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from radixgate.fleet.ask import Ask
from radixgate.fleet.identity import MirrorKey
from radixgate.fleet.recent_prompts import Prompt, RecentPrompts
from radixgate.fleet.worker_record import WorkerRecord
from radixgate.policies.base import Candidates
from radixgate.radix_mirror.mirror import RadixMirror


@dataclass(frozen=True, slots=True, eq=False)
class SharedMirror:
    """What all workers of one key have in common."""

    mirror: RadixMirror
    recent: RecentPrompts


class Lineup:
    """One request before the ready workers. Lives for one choice."""

    def __init__(
        self,
        ask: Ask,
        records: Sequence[WorkerRecord],
        mirrors: Mapping[MirrorKey, SharedMirror],
        now: float,
    ) -> None:
        self._ask = ask
        self._records = records
        self._mirrors = mirrors
        self._now = now
        self._depths: list[int] | None = None
        self._cached: list[int] = []

    def candidates(self) -> Candidates:
        """O(workers), about 0.4 us each; what is cached is found when first asked for."""
        records = self._records
        reports = [record.fresh_report(self._now) for record in records]
        return Candidates(
            ids=[record.identity.id for record in records],
            requests_in_flight=[record.in_flight for record in records],
            uncached_tokens_in_flight=[record.uncached_tokens_in_flight for record in records],
            running=[report.running if report else None for report in reports],
            waiting=[report.waiting if report else None for report in reports],
            queued_uncached_tokens=[
                report.queued_uncached_tokens if report else None for report in reports
            ],
            kv_share_used=[
                record.kv_share_used(report)
                for record, report in zip(records, reports, strict=True)
            ],
            prefill_tokens_per_s=[record.speed.tokens_per_s for record in records],
            read_cached_tokens=self.cached_tokens,
            read_recent_share=self.recent_share,
        )

    def cached_tokens(self) -> Sequence[int]:
        """Of each worker, the tokens of this prompt that it need not compute."""
        if self._depths is None:
            self._depths = self._find_depths()
            tokens = self._ask.prompt_tokens
            self._cached = [
                key.cached_tokens(depth, len(self._ask.blocks[key]), tokens) if depth else 0
                for depth, key in zip(self._depths, self._keys(), strict=True)
            ]
        return self._cached

    def recent_share(self, index: int) -> float:
        """The share of recent prompts that begin with what this worker has cached of ours."""
        self.cached_tokens()
        assert self._depths is not None
        depth, key = self._depths[index], self._records[index].identity.mirror
        if not depth:
            return 0.0
        return self._mirrors[key].recent.share(prompt_of(self._ask, key), depth)

    def _find_depths(self) -> list[int]:
        by_key = {
            key: self._mirrors[key].mirror.depths(self._ask.blocks[key])
            for key in set(self._keys())
            if key in self._ask.blocks
        }
        return [by_key.get(r.identity.mirror, {}).get(r.identity.id, 0) for r in self._records]

    def _keys(self) -> list[MirrorKey]:
        return [record.identity.mirror for record in self._records]


def prompt_of(ask: Ask, key: MirrorKey) -> Prompt:
    """The ask's prompt as the mirror of this key has it; without blocks if it is not named."""
    return Prompt(ask.blocks.get(key, ()), ask.fingerprint or ask.prompt_tokens)
