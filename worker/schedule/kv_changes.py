"""What happened to the prefix cache since somebody last asked, and which prompts are pending."""

from collections.abc import Sequence

from radixgate.proto.kv_events import KvEvent, Pending, Settled
from radixgate.worker.requests.sequence import Request
from radixgate.worker.schedule.kv_memory import KvMemory


class KvChanges:
    """Gathers events in order; bounded by what one step and its commands can change.

    A prompt is pending from the moment it is accepted, so that others who place requests know of
    it while it waits, until its blocks are stored or it is given up.
    """

    def __init__(self, *, enabled: bool) -> None:
        """Not enabled: nothing is kept, so nothing is announced."""
        self._enabled = enabled
        self._events: list[KvEvent] = []
        self._cleared = False

    def add(self, event: KvEvent) -> None:
        self._events.append(event)

    def announce(self, request: Request, memory: KvMemory) -> None:
        """The blocks of an accepted prompt that are not there yet. O(prompt)."""
        if not self._enabled:
            return
        parent, ids = memory.missing_blocks(request.sequences[0])
        if ids:
            request.pending = True
            self.add(Pending(request.key, parent, ids))

    def settle(self, request: Request) -> None:
        """The prompt is stored or given up; harmless if it was not pending."""
        if request.pending:
            request.pending = False
            self.add(Settled(request.key))

    def cleared(self) -> None:
        """Everything was dropped while nobody ran: what came before does not matter any more."""
        self._events.clear()
        self._cleared = True

    def take(self) -> tuple[bool, Sequence[KvEvent]]:
        """Whether the cache was dropped, and what happened since then or since the last call."""
        taken = self._cleared, self._events
        self._cleared, self._events = False, []
        return taken
