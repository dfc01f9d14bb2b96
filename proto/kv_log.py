"""The worker's side of WatchKv: a ring of numbered updates over the set of blocks it stores."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.proto.kv_updates import Digest, KvHeartbeat, KvSnapshotPart, KvStep, KvUpdate

# An event is at most 8 * (EVENT_WORDS + ids) bytes on the wire, so an update of MAX_WORDS words
# stays under 1 MB.
EVENT_WORDS = 3
MAX_WORDS = 100_000


class KvLog:
    """What is stored, what is pending, and the last updates that led there. Does no I/O.

    The ring holds at most `ring_updates` updates of together `ring_words` words (8 bytes each); a
    reader that has fallen behind it gets a snapshot instead, so a slow one costs nothing.
    Not thread-safe: one thread records and reads.
    """

    def __init__(
        self, epoch: int, *, ring_updates: int = 8_192, ring_words: int = 1_000_000
    ) -> None:
        """`epoch` is any number but 0 that no earlier life of this worker has used."""
        assert epoch != 0, "epoch 0 is how a reader says that it holds nothing"
        self._epoch = epoch
        self._seq = 0
        self._ring_updates = ring_updates
        self._ring_words = ring_words
        self._ring: deque[KvStep] = deque()
        self._words = 0
        self._parents: dict[int, int] = {}
        self._tiers: dict[int, int] = {}  # block id -> bit set of tiers; same keys as _parents
        self._counts = dict.fromkeys(Tier, 0)
        self._xors = dict.fromkeys(Tier, 0)
        self._pending: dict[int, Pending] = {}

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def seq(self) -> int:
        """The number of the last update of this epoch; 0 before the first."""
        return self._seq

    def __len__(self) -> int:
        """Blocks stored, whatever the tier."""
        return len(self._parents)

    def record(self, events: Iterable[KvEvent]) -> None:
        """Number what one engine step changed; no events, no update. O(block ids).

        A step too large for one message becomes several updates. Of a pending prompt with more
        than 99,997 blocks only the first so many are told.
        """
        for chunk in _chunks(events):
            for event in chunk:
                self._apply(event)
            self._seq += 1
            self._push(KvStep(self._epoch, self._seq, tuple(chunk)))

    def clear(self, new_epoch: int) -> None:
        """Nothing is stored any more; numbering starts again. Pending prompts stay pending."""
        assert new_epoch not in (0, self._epoch), f"epoch {new_epoch} was used before"
        self._epoch = new_epoch
        self._seq = 0
        self._ring.clear()
        self._words = 0
        self._parents.clear()
        self._tiers.clear()
        self._counts = dict.fromkeys(Tier, 0)
        self._xors = dict.fromkeys(Tier, 0)

    def since(self, epoch: int, seq: int) -> Sequence[KvUpdate]:
        """What a reader at this position lacks: the rest of the ring, else a whole snapshot.

        The last of the updates is the reader's new position; none: it lacks nothing. A snapshot
        costs O(blocks stored), about 1 us a block.
        """
        first_kept = self._seq - len(self._ring) + 1
        if epoch == self._epoch and first_kept <= seq + 1 <= self._seq + 1:
            return list(islice(self._ring, seq + 1 - first_kept, None))
        return list(self._snapshot())

    def heartbeat(self) -> KvHeartbeat:
        """Count and XOR of each tier that holds anything, as of now."""
        digests = {
            tier: Digest(self._counts[tier], self._xors[tier])
            for tier in Tier
            if self._counts[tier]
        }
        return KvHeartbeat(self._epoch, self._seq, digests)

    def check(self) -> None:
        """Assert that what is kept twice agrees. O(blocks + ring)."""
        assert self._parents.keys() == self._tiers.keys()
        for tier in Tier:
            blocks = [block for block, tiers in self._tiers.items() if tiers >> tier & 1]
            xor = 0
            for block in blocks:
                xor ^= block
            assert (len(blocks), xor) == (self._counts[tier], self._xors[tier]), tier
        assert self._words == sum(map(_step_words, self._ring))
        assert len(self._ring) <= self._ring_updates
        numbers = [step.seq for step in self._ring]
        assert numbers == list(range(self._seq - len(self._ring) + 1, self._seq + 1))

    def _apply(self, event: KvEvent) -> None:
        match event:
            case Stored():
                self._store(event)
            case Removed():
                self._remove(event)
            case Pending():
                self._pending[event.key] = event
            case Settled():
                self._pending.pop(event.key, None)

    def _store(self, event: Stored) -> None:
        bit = 1 << event.tier
        parent = event.parent
        for block in event.ids:
            tiers = self._tiers.get(block, 0)
            if not tiers & bit:
                self._tiers[block] = tiers | bit
                self._parents[block] = parent
                self._counts[event.tier] += 1
                self._xors[event.tier] ^= block
            parent = block

    def _remove(self, event: Removed) -> None:
        bit = 1 << event.tier
        for block in event.ids:
            tiers = self._tiers.get(block, 0)
            if not tiers & bit:
                continue
            self._counts[event.tier] -= 1
            self._xors[event.tier] ^= block
            if tiers == bit:
                del self._tiers[block], self._parents[block]
            else:
                self._tiers[block] = tiers & ~bit

    def _push(self, step: KvStep) -> None:
        self._ring.append(step)
        self._words += _step_words(step)
        while len(self._ring) > self._ring_updates or self._words > self._ring_words:
            self._words -= _step_words(self._ring.popleft())

    def _snapshot(self) -> Iterator[KvSnapshotPart]:
        parts = list(_chunks((*self._runs(), *self._pending.values()))) or [[]]
        for number, part in enumerate(parts, 1):
            yield KvSnapshotPart(
                self._epoch,
                self._seq,
                first=number == 1,
                last=number == len(parts),
                stored=tuple(event for event in part if isinstance(event, Stored)),
                pending=tuple(event for event in part if isinstance(event, Pending)),
            )

    def _runs(self) -> Iterator[Stored]:
        """Everything stored in runs as long as can be; a run in two tiers comes twice."""
        run: list[int] = []
        parent = tiers = 0
        for block in self._parents_first():
            if not (run and self._parents[block] == run[-1] and self._tiers[block] == tiers):
                yield from _in_each_tier(parent, run, tiers)
                run, parent, tiers = [], self._parents[block], self._tiers[block]
            run.append(block)
        yield from _in_each_tier(parent, run, tiers)

    def _parents_first(self) -> Iterator[int]:
        # The order of storing would do, but for a block that was removed and stored again while
        # its children stayed.
        seen: set[int] = set()
        for block in self._parents:
            line = []
            while block in self._parents and block not in seen:
                seen.add(block)
                line.append(block)
                block = self._parents[block]
            yield from reversed(line)


def _in_each_tier(parent: int, run: Sequence[int], tiers: int) -> Iterator[Stored]:
    return (Stored(parent, run, tier) for tier in Tier if tiers >> tier & 1)


def _words_of(event: KvEvent) -> int:
    return EVENT_WORDS + (0 if isinstance(event, Settled) else len(event.ids))


def _step_words(step: KvStep) -> int:
    return sum(map(_words_of, step.events))


def _chunks(events: Iterable[KvEvent]) -> Iterator[list[KvEvent]]:
    """The events in lists that fit one message each, in order."""
    chunk: list[KvEvent] = []
    words = 0
    for event in events:
        for piece in _pieces(event):
            if words + _words_of(piece) > MAX_WORDS:
                yield chunk
                chunk, words = [], 0
            chunk.append(piece)
            words += _words_of(piece)
    if chunk:
        yield chunk


def _pieces(event: KvEvent) -> Iterator[KvEvent]:
    """The event itself, or what it amounts to in events small enough for a message."""
    if _words_of(event) <= MAX_WORDS or isinstance(event, Settled):
        yield event
        return
    longest = MAX_WORDS - EVENT_WORDS
    if isinstance(event, Pending):
        yield Pending(event.key, event.parent, event.ids[:longest])
        return
    for start in range(0, len(event.ids), longest):
        ids = event.ids[start : start + longest]
        if isinstance(event, Removed):
            yield Removed(ids, event.tier)
        else:
            yield Stored(event.parent if start == 0 else event.ids[start - 1], ids, event.tier)
