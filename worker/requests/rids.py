"""The names of live requests, so that each is used once and can be found."""

from radixgate.errors import DuplicateRequest
from radixgate.worker.requests.outbox import Sink


class Rids:
    """rid -> who asked. An empty rid names nobody. Adding and removing cost O(1).

    A request lives from `add` until its sink is about to hear its end, so that whoever has seen
    the end may use the name again.
    """

    def __init__(self) -> None:
        self._by_sink: dict[Sink, dict[int, str]] = {}
        self._by_rid: dict[str, tuple[Sink, int]] = {}

    def __len__(self) -> int:
        return sum(len(handles) for handles in self._by_sink.values())

    def add(self, sink: Sink, handle: int, rid: str) -> None:
        """Raises DuplicateRequest where a live request has this rid, or this sink this handle."""
        handles = self._by_sink.setdefault(sink, {})
        if rid in self._by_rid:
            raise DuplicateRequest(f"a request with rid {rid!r} is still running", param="rid")
        if handle in handles:
            raise DuplicateRequest(f"handle {handle} is still in use", param="handle")
        handles[handle] = rid
        if rid:
            self._by_rid[rid] = (sink, handle)

    def ended(self, sink: Sink, handle: int) -> None:
        """Harmless for one that is not there any more."""
        rid = self._by_sink.get(sink, {}).pop(handle, "")
        if rid:
            del self._by_rid[rid]

    def knows(self, sink: Sink) -> bool:
        """True from a sink's first submit until it leaves."""
        return sink in self._by_sink

    def leave(self, sink: Sink) -> None:
        """All of the sink's requests are forgotten, and so is the sink."""
        for rid in self._by_sink.pop(sink, {}).values():
            if rid:
                del self._by_rid[rid]

    def find(self, rid: str, *, prefix: bool) -> list[tuple[Sink, int]]:
        """Who has exactly this rid; with `prefix`, every rid that begins so. O(live) then."""
        if prefix:
            return [owner for name, owner in self._by_rid.items() if name.startswith(rid)]
        owner = self._by_rid.get(rid)
        return [] if owner is None else [owner]

    def live(self) -> list[tuple[Sink, int]]:
        return [(sink, handle) for sink, handles in self._by_sink.items() for handle in handles]
