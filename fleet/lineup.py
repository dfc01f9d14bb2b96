"""The workers that may take a request, in the columns that a policy reads."""

from collections.abc import Sequence

from radixgate.fleet.ask import Ask
from radixgate.fleet.identity import MirrorKey
from radixgate.fleet.ready_workers import ReadyWorkers
from radixgate.fleet.recent_prompts import Prompt
from radixgate.fleet.worker_record import SharedMirror
from radixgate.policies.base import Candidates, RouteRequest


class Lineup:
    """One request before the ready workers, of which there is at least one. Lives for a choice."""

    def __init__(self, ask: Ask, ready: ReadyWorkers, now: float) -> None:
        self._ask = ask
        self._ready = ready
        self._records = ready.records
        self._now = now
        self._ids = ready.ids
        self._depths: list[int] = []  # both empty until asked for
        self._cached: list[int] = []

    def candidates(self) -> Candidates:
        """O(workers), about 20 ns each; what is cached is found when first asked for."""
        ready = self._ready
        ready.refresh(self._now)
        return Candidates(
            ids=self._ids,
            requests_in_flight=ready.in_flight.requests[:],
            uncached_tokens_in_flight=ready.in_flight.uncached[:],
            running=ready.running[:],
            waiting=ready.waiting[:],
            queued_uncached_tokens=ready.queued[:],
            queued_elsewhere=_queued_elsewhere(ready),
            kv_share_used=_kv_shares_used(ready),
            prefill_tokens_per_s=ready.speeds[:],
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

    def held_blocks(self, index: int) -> int:
        """The leading blocks that this worker holds."""
        if not self._cached:
            self._look()
        return self._depths[index]

    def _look(self) -> None:
        """Every mirror once. Nearly always there is one."""
        ready = self._ready
        if len(ready.mirrors) == 1:
            self._depths, self._cached = self._depths_in(ready.mirrors[0], ready.mirror_places())
            return
        self._depths, self._cached = [0] * len(self._ids), [0] * len(self._ids)
        for shared in ready.mirrors:
            mine = [at for at, record in enumerate(self._records) if record.shared is shared]
            places = [shared.mirror.place(self._ids[at]) for at in mine]
            for at, depth, cached in zip(mine, *self._depths_in(shared, places), strict=True):
                self._depths[at], self._cached[at] = depth, cached

    def _depths_in(
        self, shared: SharedMirror, places: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Depth and cached tokens of the workers at these places of the mirror's column."""
        blocks = self._ask.blocks.get(shared.key, ())
        held = shared.mirror.column(blocks) if blocks else ()
        if not any(held):
            nothing = [0] * len(places)
            return nothing, nothing
        depths = list(map(held.__getitem__, places))
        return depths, shared.key.cached_tokens(depths, len(blocks), self._ask.prompt_tokens)


def _queued_elsewhere(ready: ReadyWorkers) -> Sequence[int | None]:
    """What siblings have sent is in our own counts already, sooner than a worker can report it."""
    queued = ready.queued_elsewhere[:]
    if not any(queued):
        return queued
    return [
        None if tokens is None else max(0, tokens - record.siblings_uncached_tokens)
        for tokens, record in zip(queued, ready.records, strict=True)
    ]


def _kv_shares_used(ready: ReadyWorkers) -> Sequence[float | None]:
    """As reported; else our own tokens over the capacity; None if neither is known."""
    shares = ready.kv_share[:]
    if None in shares:
        for place, share in enumerate(shares):
            record = ready.records[place]
            capacity = record.identity.capacity_tokens
            if share is None and capacity:
                shares[place] = min(1.0, record.tokens_in_flight / capacity)
    return shares


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
