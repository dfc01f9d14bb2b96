"""A simulated worker's KV memory: blocks of running requests, and a prefix cache of the rest."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from radixgate.proto.kv_events import KvEvent, Removed, Stored

ROOT = 0  # the parent of every prompt's first block


@dataclass(slots=True, eq=False)
class Holding:
    """What one running request has of a pool. Changed by BlockPool only."""

    ids: Sequence[int]  # its prompt's whole blocks
    stored: int  # so many of them, from the front, are stored and locked
    reserved: int  # blocks set aside for the rest of its prompt and for its output


class BlockPool:
    """`capacity` blocks. Stored blocks that nobody runs on stay until their room is wanted.

    The leaf that was used least recently goes first. Whatever runs has room for all that it will
    ever need from the start, so nothing is ever preempted.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._locks: dict[int, int] = {}  # stored blocks with requests running on them
        # Stored blocks nobody runs on, least recently used first. Prompts are let go of
        # from their last block to their first, so a block always stands before its parent.
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._reserved = 0
        self._events: list[KvEvent] = []

    def __contains__(self, block: int) -> bool:
        return block in self._locks or block in self._idle

    @property
    def locked(self) -> int:
        """Blocks of running requests, shared ones once, those set aside included."""
        return len(self._locks) + self._reserved

    @property
    def evictable(self) -> int:
        return len(self._idle)

    def depth(self, ids: Sequence[int]) -> int:
        """How many leading blocks are stored. O(depth)."""
        locks, idle = self._locks, self._idle
        for depth, block in enumerate(ids):
            if block not in locks and block not in idle:
                return depth
        return len(ids)

    def admit(self, ids: Sequence[int], cached: int, blocks: int) -> Holding | None:
        """Lock the first `cached` blocks and set aside the rest of `blocks`; None: no room.

        Evicts as much as is needed for it. O(blocks).
        """
        locks, idle = self._locks, self._idle
        woken = [block for block in ids[:cached] if block in idle]
        wanted = blocks - cached
        free = self.capacity - len(locks) - self._reserved - len(woken)
        if wanted > free:
            return None
        for block in woken:
            del idle[block]
        for block in ids[:cached]:
            locks[block] = locks.get(block, 0) + 1
        self._reserved += wanted
        self._evict(len(locks) + len(idle) + self._reserved - self.capacity)
        return Holding(ids, cached, wanted)

    def store(self, holding: Holding, until: int) -> None:
        """The prompt's blocks up to `until` are computed. One that is there already is shared."""
        locks, idle = self._locks, self._idle
        start = holding.stored
        fresh = [b for b in holding.ids[start:until] if b not in locks and b not in idle]
        for block in holding.ids[start:until]:
            idle.pop(block, None)
            locks[block] = locks.get(block, 0) + 1
        holding.stored = until
        holding.reserved -= until - start
        self._reserved -= until - start
        if fresh:
            # What is stored is prefix-closed, so the new ones are the last.
            before = until - len(fresh)
            self._events.append(Stored(holding.ids[before - 1] if before else ROOT, fresh))

    def release(self, holding: Holding) -> None:
        """The request is over: its prompt's blocks stay as long as nobody wants the room."""
        locks, idle = self._locks, self._idle
        for block in reversed(holding.ids[: holding.stored]):
            left = locks[block] - 1
            if left:
                locks[block] = left
            else:
                del locks[block]
                idle[block] = None
        self._reserved -= holding.reserved
        holding.stored = holding.reserved = 0

    def take_events(self) -> Sequence[KvEvent]:
        """What was stored and removed since the last call."""
        events, self._events = self._events, []
        return events

    def check(self) -> None:
        """Assert that the pool holds no more than it can, and nothing twice. O(blocks)."""
        assert self._reserved >= 0
        assert all(count > 0 for count in self._locks.values())
        assert not self._locks.keys() & self._idle.keys()
        assert len(self._locks) + len(self._idle) + self._reserved <= self.capacity

    def _evict(self, blocks: int) -> None:
        if blocks <= 0:
            return
        self._events.append(Removed([self._idle.popitem(last=False)[0] for _ in range(blocks)]))
