"""The set of blocks that a reader of cache events believes to be stored, by brute force."""

from collections.abc import Iterable

from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored


class StoredBlocks:
    def __init__(self) -> None:
        self.parents: dict[int, int] = {}
        self.pending: set[int] = set()

    def apply(self, events: Iterable[KvEvent]) -> None:
        """Fails if an event cannot follow on those before it."""
        for event in events:
            match event:
                case Stored(parent, ids):
                    for block in ids:
                        assert block not in self.parents, "stored twice"
                        self.parents[block] = parent
                        parent = block
                case Removed(ids):
                    for block in ids:
                        assert block not in self.parents.values(), "a parent left before its child"
                        del self.parents[block]
                case Pending(key):
                    assert key not in self.pending, "pending twice"
                    self.pending.add(key)
                case Settled(key):
                    self.pending.remove(key)

    @property
    def ids(self) -> set[int]:
        return set(self.parents)
