"""The books of one process among several over the same fleet: each knows what the others have sent.

What workers report reaches every process by itself. What they cannot report yet, requests under way
and prompts just placed, the processes tell each other; it is entered here as if it were our own.
"""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from radixgate.clock import Clock
from radixgate.fleet.fleet import Fleet
from radixgate.fleet.identity import MirrorKey
from radixgate.fleet.news import News, NewsBox, Placed, PlacementEnd, Share
from radixgate.fleet.recent_prompts import RecentPrompt, RecentPrompts
from radixgate.fleet.worker_record import SharedMirror, WorkerRecord
from radixgate.radix_mirror.mirror import MirrorConfig, Placement, RadixMirror

# Placements of others whose end is still of interest; the oldest are forgotten first, and then
# leave as their time is over.
_MAX_FOLLOWED = 16_384


class Siblings:
    """What this process tells and hears. Not thread-safe; does no I/O.

    `on_news` is called when there is something to take, once until it is taken.
    """

    def __init__(self, peer: int, on_news: Callable[[], None]) -> None:
        """`peer`: this process's number, which no other has."""
        self.peer = peer
        self._on_news = on_news
        self._outbox = NewsBox()
        self._called = False
        self._next = 0
        self._own: dict[Placement, int] = {}  # not ended
        self._last: tuple[Placed, Sequence[int]] | None = None  # whose mark is still to come
        self._told: dict[str, Share] = {}  # by worker, the last
        # Workers of which another one may have to be told; True: in any case.
        self._moved: dict[str, bool] = {}
        self._loads: dict[tuple[int, str], tuple[WorkerRecord, Share]] = {}  # of the others
        self._followed: OrderedDict[tuple[int, int], tuple[ToldMirror, Placement]] = OrderedDict()
        self._shared: dict[MirrorKey, tuple[ToldMirror, ToldPrompts]] = {}
        self._fleet: Fleet | None = None

    def open(self, fleet: Fleet) -> None:
        """These are the books. Called once, before any worker is admitted."""
        self._fleet = fleet
        fleet.make_shared = self._make_shared

    # ------------------------------------------------------------ told

    def take(self, *, whole: bool = False) -> News | None:
        """What the others should know; None: nothing. O(what has changed).

        `whole`: loads of every worker, changed or not, so that what got lost is made good; once in
        a while. O(workers).
        """
        assert self._fleet is not None
        self._called = False
        self._flush_last()
        if whole:
            self._forget_who_left()
            self._moved = {record.identity.id: True for record in self._fleet.records()}
        moved, self._moved = self._moved, {}
        for worker_id, anyway in moved.items():
            record = self._fleet.record(worker_id)
            if record is None:
                continue
            share, before = self._share_of(record), self._told.get(worker_id)
            self._told[worker_id] = share
            if anyway or share != (before or _nothing(share)):
                self._outbox.load(share)
        return self._outbox.take()

    def _forget_who_left(self) -> None:
        """What is kept of workers that are in the fleet no more. O(workers x siblings)."""
        assert self._fleet is not None
        for (peer, worker_id), (record, _) in list(self._loads.items()):
            if self._fleet.record(worker_id) is not record:
                del self._loads[peer, worker_id]
        for worker_id in [name for name in self._told if self._fleet.record(name) is None]:
            del self._told[worker_id]
        used = {record.shared.key for record in self._fleet.records()}
        for key in self._shared.keys() - used:
            mirror, _ = self._shared.pop(key)
            for followed in [name for name, (of, _) in self._followed.items() if of is mirror]:
                del self._followed[followed]

    def placed(
        self, mirror: "ToldMirror", placement: Placement, ids: Sequence[int], keep_s: float
    ) -> None:
        """A prompt of ours goes to a worker."""
        self._flush_last()
        self._next += 1
        self._own[placement] = self._next
        content = array("Q", ids).tobytes()
        key, worker_id = mirror.key, placement.worker_id
        self._last = (
            Placed(self.peer, self._next, worker_id, key, content, 0, keep_s),
            ids,
        )
        self.moved(worker_id)

    def remembered(self, key: MirrorKey, prompt: RecentPrompt) -> None:
        """The prompt placed last has this mark; one that was placed nowhere is not told."""
        if self._last is None or prompt.ids is not self._last[1] or self._last[0].key != key:
            return
        self._last = replace(self._last[0], mark=prompt.mark), self._last[1]
        self._flush_last()

    def ended(self, placement: Placement, *, computed: bool, cached_blocks: int | None) -> None:
        number = self._own.pop(placement, None)
        if number is not None:
            self._flush_last()
            self._outbox.end(PlacementEnd(self.peer, number, computed, cached_blocks))
        self.moved(placement.worker_id)

    def moved(self, worker_id: str) -> None:
        """What we have under way at this worker has changed."""
        self._moved.setdefault(worker_id, False)
        if not self._called:
            self._called = True
            self._on_news()

    def begins(self, worker_id: str) -> None:
        """It is there, or anew, or has dropped its cache. What was told of it may be forgotten, or
        be of one that is gone: what is under way there is told once more, with other news."""
        told = self._told.pop(worker_id, None) is not None
        self._moved[worker_id] = told or self._moved.get(worker_id, False)

    def _flush_last(self) -> None:
        if self._last is not None:
            self._outbox.place(self._last[0])
            self._last = None

    def _share_of(self, record: WorkerRecord) -> Share:
        """Our own part of the counts."""
        return Share(
            self.peer,
            record.identity.id,
            record.in_flight - record.siblings_requests,
            record.tokens_in_flight - record.siblings_tokens,
            record.uncached_tokens_in_flight - record.siblings_uncached_tokens,
        )

    # ------------------------------------------------------------ heard

    def hear(self, news: News) -> None:
        """Enter what others tell. What is of a worker that is not here is ignored."""
        for share in news.loads:
            self._enter(share)
        for placed in news.placed:
            self._follow(placed)
        for ended in news.ended:
            self._end(ended)

    def gone(self, peer: int) -> None:
        """A process has died, and with it all that it had under way."""
        for other, worker_id in [key for key in self._loads if key[0] == peer]:
            self._enter(Share(other, worker_id, 0, 0, 0))
            self._loads.pop((other, worker_id), None)
        for key in [key for key in self._followed if key[0] == peer]:
            del self._followed[key]

    def _enter(self, share: Share) -> None:
        assert self._fleet is not None
        key = share.peer, share.worker_id
        record = self._fleet.record(share.worker_id)
        if record is None:
            self._loads.pop(key, None)
            return
        known = self._loads.get(key)
        if known is not None and known[0] is record:
            _add(record, known[1], -1)
        _add(record, share, 1)
        self._loads[key] = record, share

    def _follow(self, placed: Placed) -> None:
        assert self._fleet is not None
        record = self._fleet.record(placed.worker_id)
        if record is None or record.shared.key != placed.key:
            return
        mirror, prompts = self._shared[placed.key]
        ids = array("Q")
        ids.frombytes(placed.ids)
        if placed.mark:
            prompts.add_theirs(RecentPrompt(ids, placed.mark))
        placement = mirror.expect_theirs(placed.worker_id, ids, placed.keep_s)
        if placement is None:
            return
        self._followed[placed.peer, placed.number] = mirror, placement
        if len(self._followed) > _MAX_FOLLOWED:
            self._followed.popitem(last=False)

    def _end(self, ended: PlacementEnd) -> None:
        followed = self._followed.pop((ended.peer, ended.number), None)
        if followed is None:
            return
        mirror, placement = followed
        if ended.computed:
            mirror.settle_theirs(placement, ended.cached_blocks)
        else:
            mirror.withdraw_theirs(placement)

    def _make_shared(self, key: MirrorKey, clock: Clock, config: MirrorConfig) -> SharedMirror:
        mirror, prompts = ToldMirror(key, self, clock, config), ToldPrompts(key, self)
        self._shared[key] = mirror, prompts
        return SharedMirror(key, mirror, prompts, self.moved)


class ToldMirror(RadixMirror):
    """A mirror whose placements are told to the siblings, and takes theirs."""

    def __init__(
        self, key: MirrorKey, siblings: Siblings, clock: Clock, config: MirrorConfig
    ) -> None:
        super().__init__(clock, config)
        self.key = key
        self._siblings = siblings

    def add_worker(
        self, worker_id: str, *, reports_kv: bool = True, capacity_blocks: int | None = None
    ) -> None:
        super().add_worker(worker_id, reports_kv=reports_kv, capacity_blocks=capacity_blocks)
        self._siblings.begins(worker_id)

    def expect(
        self, worker_id: str, ids: Sequence[int], keep_s: float, held: int = 0
    ) -> Placement | None:
        placement = super().expect(worker_id, ids, keep_s, held)
        if placement is not None:
            self._siblings.placed(self, placement, ids, keep_s)
        return placement

    def answered(self, placement: Placement) -> None:
        super().answered(placement)
        self._siblings.moved(placement.worker_id)

    def withdraw(self, placement: Placement) -> None:
        super().withdraw(placement)
        self._siblings.ended(placement, computed=False, cached_blocks=None)

    def settle(self, placement: Placement, cached_blocks: int | None) -> None:
        super().settle(placement, cached_blocks)
        self._siblings.ended(placement, computed=True, cached_blocks=cached_blocks)

    def expect_theirs(self, worker_id: str, ids: Sequence[int], keep_s: float) -> Placement | None:
        """A sibling's prompt: as our own, and told to nobody."""
        return super().expect(worker_id, ids, keep_s)

    def withdraw_theirs(self, placement: Placement) -> None:
        super().withdraw(placement)

    def settle_theirs(self, placement: Placement, cached_blocks: int | None) -> None:
        super().settle(placement, cached_blocks)


class ToldPrompts(RecentPrompts):
    """The recent prompts of all siblings."""

    def __init__(self, key: MirrorKey, siblings: Siblings) -> None:
        super().__init__()
        self._key = key
        self._siblings = siblings

    def add(self, prompt: RecentPrompt) -> None:
        super().add(prompt)
        self._siblings.remembered(self._key, prompt)

    def add_theirs(self, prompt: RecentPrompt) -> None:
        """As our own, and told to nobody."""
        super().add(prompt)


def _nothing(share: Share) -> Share:
    return Share(share.peer, share.worker_id, 0, 0, 0)


def _add(record: WorkerRecord, share: Share, sign: int) -> None:
    requests, tokens, uncached = share.requests, share.tokens, share.uncached_tokens
    record.counts.add(record.place, sign * requests)
    record.siblings_requests += sign * requests
    record.tokens_in_flight += sign * tokens
    record.siblings_tokens += sign * tokens
    record.counts.uncached[record.place] += sign * uncached
    record.siblings_uncached_tokens += sign * uncached
