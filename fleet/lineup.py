"""The workers that may take a request, in the columns that a policy reads."""

from collections.abc import Sequence

from radixgate.fleet.ask import Ask
from radixgate.fleet.identity import MirrorKey
from radixgate.fleet.load_report import REPORT_MAX_AGE_S, LoadReport
from radixgate.fleet.recent_prompts import Prompt
from radixgate.fleet.worker_record import SharedMirror, WorkerRecord
from radixgate.policies.base import Candidates, RouteRequest


class Lineup:
    """One request before the ready workers, of which there is at least one. Lives for a choice."""

    def __init__(self, ask: Ask, records: Sequence[WorkerRecord], now: float) -> None:
        self._ask = ask
        self._records = records
        self._now = now
        self._ids = [record.identity.id for record in records]
        self._depths: list[int] = []  # both empty until asked for
        self._cached: list[int] = []

    def candidates(self) -> Candidates:
        """O(workers), about 0.4 us each; what is cached is found when first asked for."""
        records = self._records
        oldest = self._now - REPORT_MAX_AGE_S
        reports = [r.report if r.reported_at >= oldest else None for r in records]
        running, waiting, queued, elsewhere = _reported(reports, records)
        return Candidates(
            ids=self._ids,
            requests_in_flight=[record.in_flight for record in records],
            uncached_tokens_in_flight=[record.uncached_tokens_in_flight for record in records],
            running=running,
            waiting=waiting,
            queued_uncached_tokens=queued,
            queued_elsewhere=elsewhere,
            kv_share_used=list(map(_kv_share_used, records, reports)),
            prefill_tokens_per_s=[record.speed.tokens_per_s for record in records],
            read_cached_tokens=self.cached_tokens,
            read_recent_share=self.recent_share,
            read_decode_step_s=self.decode_step_s,
        )

    def cached_tokens(self) -> Sequence[int]:
        """Of each worker, the tokens of this prompt that it need not compute."""
        if not self._cached:
            self._look()
        return self._cached

    def confirmed_tokens(self) -> Sequence[int]:
        """Of those, what the worker has reported as stored. O(workers x blocks)."""
        confirmed = []
        for record, cached in zip(self._records, self.cached_tokens(), strict=True):
            key, mirror = record.shared.key, record.shared.mirror
            blocks = self._ask.blocks.get(key, ())
            depth = mirror.confirmed_depth(record.identity.id, blocks)
            (tokens,) = key.cached_tokens([depth], len(blocks), self._ask.prompt_tokens)
            confirmed.append(min(tokens, cached))
        return confirmed

    def recent_share(self, index: int) -> float:
        """The share of recent prompts that begin with what this worker has cached of ours."""
        if not self._cached:
            self._look()
        shared = self._records[index].shared
        return shared.recent.share(prompt_of(self._ask, shared.key), self._depths[index])

    def recent_shares(self) -> Sequence[float]:
        """`recent_share` of each worker. O(different depths x prompts)."""
        self.cached_tokens()
        known: dict[tuple[int, int], float] = {}
        shares = []
        for index, record in enumerate(self._records):
            where = id(record.shared), self._depths[index]
            if where not in known:
                known[where] = self.recent_share(index)
            shares.append(known[where])
        return shares

    def decode_step_s(self) -> Sequence[float | None]:
        """Of each worker, as reported within the last two seconds."""
        reports = [record.fresh_report(self._now) for record in self._records]
        return [report.decode_step_s if report else None for report in reports]

    def _look(self) -> None:
        """Every mirror once. Nearly always there is one."""
        mirrors = {id(record.shared): record.shared for record in self._records}
        if len(mirrors) == 1:
            (shared,) = mirrors.values()
            self._depths, self._cached = self._depths_in(shared)
            return
        found = {number: self._depths_in(shared) for number, shared in mirrors.items()}
        mine = [found[id(record.shared)] for record in self._records]
        self._depths = [depths[index] for index, (depths, _) in enumerate(mine)]
        self._cached = [cached[index] for index, (_, cached) in enumerate(mine)]

    def _depths_in(self, shared: SharedMirror) -> tuple[list[int], list[int]]:
        """Depth and cached tokens of every worker, as this mirror knows them."""
        blocks = self._ask.blocks.get(shared.key, ())
        held = shared.mirror.depths(blocks)
        depths = [held.get(worker_id, 0) for worker_id in self._ids]
        return depths, shared.key.cached_tokens(depths, len(blocks), self._ask.prompt_tokens)


def _reported(
    reports: Sequence[LoadReport | None], records: Sequence[WorkerRecord]
) -> tuple[Sequence[int | None], ...]:
    """Running, waiting, uncached tokens queued in all, and of those the other gateways'.

    What siblings have sent is in our own counts already, sooner than a worker can report it.
    """
    if not any(reports):
        nothing = [None] * len(reports)
        return nothing, nothing, nothing, nothing
    return (
        [report.running if report else None for report in reports],
        [report.waiting if report else None for report in reports],
        [report.queued_uncached_tokens if report else None for report in reports],
        [
            max(
                0,
                report.queued_uncached_tokens
                - report.queued_uncached_tokens_yours
                - record.siblings_uncached_tokens,
            )
            if report
            else None
            for report, record in zip(reports, records, strict=True)
        ],
    )


def prompt_of(ask: Ask, key: MirrorKey) -> Prompt:
    """The ask's prompt as the mirror of this key has it; without blocks if it is not named."""
    return Prompt(ask.blocks.get(key, ()), ask.fingerprint or ask.prompt_tokens)


def request_of(ask: Ask) -> RouteRequest:
    """The ask as a policy sees it. Blocks are those of its first mirror."""
    return RouteRequest(
        prompt_tokens=ask.prompt_tokens,
        session=ask.session,
        group=ask.group,
        tenant=ask.tenant,
        priority=ask.priority,
        blocks=next(iter(ask.blocks.values()), ()),
    )


def _kv_share_used(record: WorkerRecord, report: LoadReport | None) -> float | None:
    """As reported; else our own tokens over the capacity; None if neither is known."""
    if report and report.kv_tokens_total:
        return report.kv_tokens_used / report.kv_tokens_total
    capacity = record.identity.capacity_tokens
    return min(1.0, record.tokens_in_flight / capacity) if capacity else None
