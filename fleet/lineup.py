"""The workers that may take a request, in the columns that a policy reads."""

from collections.abc import Sequence

import msgspec

from radixgate.fleet.ask import Ask
from radixgate.fleet.identity import MirrorKey
from radixgate.fleet.picked_workers import Ready
from radixgate.fleet.ready_order import Picker, picker
from radixgate.fleet.recent_prompts import RecentPrompt
from radixgate.fleet.worker_record import SharedMirror
from radixgate.policies.base import Candidates, RouteRequest
from radixgate.proto.blocks import BYTE_BLOCK, BYTES_A_TOKEN


class Lineup(msgspec.Struct, eq=False):
    """One request before the ready workers, of which there is at least one. Lives for a choice.

    A Struct: one is made for every request.
    """

    _ask: Ask
    _ready: Ready
    _now: float
    _depths: Sequence[int] = ()  # both empty until asked for
    _cached: Sequence[int] = ()

    def candidates(self) -> Candidates:
        """O(workers), about 20 ns each; what is cached is found when first asked for."""
        ready = self._ready
        told, in_flight = ready.told(self._now), ready.in_flight
        elsewhere, kv_share, most_kv = told.queued_elsewhere, told.kv_share, told.most_kv
        return Candidates(
            ids=ready.ids,
            requests_in_flight=in_flight.requests[:],
            uncached_tokens_in_flight=in_flight.uncached[:],
            running=told.running,
            waiting=told.waiting,
            queued_uncached_tokens=told.queued,
            queued_elsewhere=_unknown_to_us(elsewhere, ready) if told.sent_elsewhere else elsewhere,
            kv_share_used=_kv_shares_used(kv_share, ready) if most_kv is None else kv_share,
            prefill_tokens_per_s=told.speeds,
            read_cached_tokens=self.cached_tokens,
            read_recent_share=self.recent_share,
            read_decode_step_s=self.decode_step_s,
            reported_requests=told.requests,
            requests_there=in_flight.there[:],
            most_kv_share=most_kv,
        )

    def cached_tokens(self) -> Sequence[int]:
        """Of each worker, the tokens of this prompt that it need not compute.

        Looks at every mirror, of which there is nearly always one, when it is first called.
        """
        if self._cached:
            return self._cached
        ready = self._ready
        if len(ready.mirrors) > 1:
            self._look_in_each(ready)
            return self._cached
        (shared,) = ready.mirrors
        if blocks := self._ask.blocks.get(shared.key):
            self._depths, self._cached = self._held_in(shared, blocks, ready.picked)
        else:  # as for a prompt shorter than a block
            self._depths = self._cached = ready.nothing
        return self._cached

    def confirmed_tokens(self) -> Sequence[int]:
        """Of those, what the worker has reported as stored. O(workers x blocks)."""
        confirmed = []
        for record, cached in zip(self._ready.records, self.cached_tokens(), strict=True):
            key, mirror = record.shared.key, record.shared.mirror
            blocks = self._ask.blocks.get(key, ())
            depth = mirror.confirmed_depth(record.identity.id, blocks)
            (tokens,) = key.cached_tokens([depth], len(blocks), self._ask.prompt_tokens)
            confirmed.append(min(tokens, cached))
        return confirmed

    def recent_share(self, index: int) -> float:
        """The share of recent prompts that begin with what this worker has cached of ours."""
        if not self._cached:
            self.cached_tokens()
        ask, shared = self._ask, self._ready.records[index].shared
        # Its blocks in that mirror; none if it is not named.
        prompt = RecentPrompt(ask.blocks.get(shared.key, ()), ask.fingerprint or ask.prompt_tokens)
        return shared.recent.share(prompt, self._depths[index])

    def recent_shares(self) -> Sequence[float]:
        """`recent_share` of each worker. O(different depths x prompts)."""
        self.cached_tokens()
        known: dict[tuple[int, int], float] = {}
        shares = []
        for index, record in enumerate(self._ready.records):
            where = id(record.shared), self._depths[index]
            if where not in known:
                known[where] = self.recent_share(index)
            shares.append(known[where])
        return shares

    def decode_step_s(self) -> Sequence[float | None]:
        """Of each worker, as reported within the last two seconds."""
        reports = [record.fresh_report(self._now) for record in self._ready.records]
        return [report.decode_step_s if report else None for report in reports]

    def held(self, index: int) -> tuple[int, int]:
        """The leading blocks that this worker holds, and the tokens that it need not compute."""
        if not self._cached:
            self.cached_tokens()
        return self._depths[index], self._cached[index]

    def _look_in_each(self, ready: Ready) -> None:
        all_depths, all_cached = [0] * len(ready), [0] * len(ready)
        for shared in ready.mirrors:
            blocks = self._ask.blocks.get(shared.key)
            if not blocks:
                continue
            mine = [at for at, record in enumerate(ready.records) if record.shared is shared]
            pick = picker([shared.mirror.place(ready.ids[at]) for at in mine])
            for at, depth, cached in zip(mine, *self._held_in(shared, blocks, pick), strict=True):
                all_depths[at], all_cached[at] = depth, cached
        self._depths, self._cached = all_depths, all_cached

    def _held_in(
        self, shared: SharedMirror, blocks: Sequence[int], pick: Picker
    ) -> tuple[Sequence[int], Sequence[int]]:
        """Depth and cached tokens of the workers that `pick` takes from the mirror's column."""
        depths = pick(shared.mirror.column(blocks))
        if not any(depths):
            return depths, depths
        return depths, shared.key.cached_tokens(depths, len(blocks), self._ask.prompt_tokens)


def _unknown_to_us(queued: Sequence[int | None], ready: Ready) -> Sequence[int | None]:
    """What siblings have sent is in our own counts already, sooner than a worker can report it."""
    return [
        None if tokens is None else max(0, tokens - record.siblings_uncached_tokens)
        for tokens, record in zip(queued, ready.records, strict=True)
    ]


def _kv_shares_used(reported: Sequence[float | None], ready: Ready) -> Sequence[float | None]:
    """As reported; else our own tokens over the capacity; None if neither is known."""
    return [
        share if share is not None or not capacity else min(1.0, record.tokens_in_flight / capacity)
        for share, record, capacity in zip(reported, ready.records, ready.capacities, strict=True)
    ]


def request_of(ask: Ask) -> RouteRequest:
    """The ask as a policy sees it. Blocks are those of its first mirror."""
    first = next(iter(ask.blocks.items()), None)
    if first is None:
        return RouteRequest(ask.prompt_tokens, ask.session, ask.group, ask.tenant, ask.priority)
    key, blocks = first
    return RouteRequest(
        ask.prompt_tokens,
        ask.session,
        ask.group,
        ask.tenant,
        ask.priority,
        blocks,
        block_tokens_of(key),
    )


def block_tokens_of(key: MirrorKey) -> int:
    """What one of a prompt's first blocks holds; those of bytes are larger further on."""
    return key.block_size or BYTE_BLOCK // BYTES_A_TOKEN
