"""Which worker has stored which response of /v1/responses: what goes on from it must go there.

Engines keep such responses to themselves, so a conversation that names the response before it is
understood by one worker of the fleet only. Of a response that is not known here (an older one, or
another gateway's) nothing is believed: a worker that does not have it says so itself.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec

from radixgate.errors import UnknownResponse

# The oldest are forgotten first. Some 300 bytes each.
MAX_KEPT = 20_000
# A longer id than this is no engine's.
MAX_ID_CHARS = 256


class StoredResponse(msgspec.Struct, frozen=True, array_like=True):
    """A response that a worker has told of."""

    id: str
    worker_id: str
    tenant: str | None  # whose it is; None: nobody's in particular


class StoredResponses:
    """The last ones of this gateway. Not thread-safe."""

    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._max_kept = max_kept
        self._kept: OrderedDict[str, StoredResponse] = OrderedDict()
        self.on_kept: Callable[[StoredResponse], None] = lambda stored: None
        # Returns once all is heard that others kept before now; None: there are no others.
        self.catch_up: Callable[[], Awaitable[None]] | None = None

    def keep(self, response_id: str, worker_id: str, tenant: str | None) -> None:
        """A worker has answered with it; `on_kept` is told. O(1)."""
        if len(response_id) <= MAX_ID_CHARS:
            stored = StoredResponse(response_id, worker_id, tenant)
            self.hear(stored)
            self.on_kept(stored)

    def hear(self, stored: StoredResponse) -> None:
        """What another process has kept. O(1)."""
        known = self._kept.pop(stored.id, None)
        # Nobody takes over another tenant's response by having a worker give out its id again.
        if known is not None and known.tenant != stored.tenant:
            stored = known
        self._kept[stored.id] = stored
        if len(self._kept) > self._max_kept:
            self._kept.popitem(last=False)

    def worker_of(self, response_id: str, tenant: str | None) -> str | None:
        """The worker that has it; None: that is not known here. O(1).

        Raises UnknownResponse if it is another tenant's.
        """
        stored = self._kept.get(response_id)
        if stored is None:
            return None
        if stored.tenant != tenant:
            raise UnknownResponse(response_id)
        self._kept.move_to_end(response_id)
        return stored.worker_id

    def may_come(self, response_id: str) -> bool:
        """It is not known, and may be after `catch_up`. O(1)."""
        return self.catch_up is not None and response_id not in self._kept

    def all(self) -> list[StoredResponse]:
        """From the oldest to the newest. O(all)."""
        return list(self._kept.values())
