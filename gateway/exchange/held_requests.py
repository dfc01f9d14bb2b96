"""Requests that the gateway holds and no worker has: nobody else could end them by order."""

from typing import Protocol

from radixgate.gateway.attempt.abort_order import AbortOrder


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
        self._held: set[Holder] = set()

    def __len__(self) -> int:
        return len(self._held)

    def enter(self, holder: Holder) -> None:
        self._held.add(holder)

    def leave(self, holder: Holder) -> None:
        """Harmless for what is not held."""
        self._held.discard(holder)

    def abort(self, order: AbortOrder) -> int:
        """End those that the order means; how many that were. O(bytes held)."""
        meant = [holder for holder in self._held if order.names_request(holder.body)]
        for holder in meant:
            self._held.discard(holder)
            holder.abort()
        return len(meant)
