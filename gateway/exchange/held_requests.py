"""Requests that the gateway holds and no worker has: nobody else could end them by order."""

from functools import partial
from typing import Protocol

from radixgate.gateway.attempt.abort_order import AbortOrder, in_turns, rid_of

_UNREAD = object()


class Holder(Protocol):
    """One request while it waits for a place, for its prompt's tokens, or for another attempt."""

    @property
    def body(self) -> bytes: ...

    def abort(self) -> None:
        """Answer it as aborted; it is held no more."""
        ...


class HeldRequests:
    """Bounded by what its holders are: the queue, and the connections that are open."""

    def __init__(self) -> None:
        self._held: dict[Holder, object] = {}  # the rid of each, once it has been read

    def __len__(self) -> int:
        return len(self._held)

    def enter(self, holder: Holder) -> None:
        self._held[holder] = _UNREAD

    def leave(self, holder: Holder) -> None:
        """Harmless for what is not held."""
        self._held.pop(holder, None)

    async def read_rids(self) -> None:
        """Before an order that names one, each body once: O(bytes held), in turns of the loop."""
        await in_turns([partial(self._read, holder) for holder in self._held])

    def abort(self, order: AbortOrder) -> int:
        """End those that the order means; how many that were. O(held), and for one that names them
        O(bytes of those that were not read)."""
        meant = [one for one in self._held if order.everything or self._is(one, order)]
        for holder in meant:
            self._held.pop(holder, None)
            holder.abort()
        return len(meant)

    def _is(self, holder: Holder, order: AbortOrder) -> bool:
        self._read(holder)
        return order.names_any(self._held[holder])

    def _read(self, holder: Holder) -> int:
        """How many bytes that took."""
        if self._held.get(holder) is not _UNREAD:
            return 0
        self._held[holder] = rid_of(holder.body)
        return len(holder.body)
