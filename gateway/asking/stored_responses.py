"""Which worker has stored which response of /v1/responses: what goes on from it must go there.

Engines keep such responses to themselves, so a conversation that names the response before it is
understood by one worker of the fleet only. Of a response that is not known here (an older one, or
another gateway's) nothing is believed: a worker that does not have it says so itself.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec

from radixgate.errors import UnknownResponse

# Of each tenant, so that none can have another's forgotten; the oldest go first. 300 bytes each.
MAX_KEPT = 5_000
# A longer id than this is no engine's.
MAX_ID_CHARS = 256


class StoredResponse(msgspec.Struct, frozen=True, array_like=True):
    """A response that a worker has told of."""

    id: str
    worker_id: str
    tenant: str | None  # whose it is; None: nobody's in particular


class StoredResponses:
    """The last ones of each tenant. Not thread-safe."""

    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._max_kept = max_kept
        self._kept: dict[str, StoredResponse] = {}
        self._of: dict[str | None, OrderedDict[str, None]] = {}  # by tenant, the oldest id first
        self.on_kept: Callable[[StoredResponse], None] = lambda stored: None
        # Returns once all is heard that others kept before now; None: there are no others.
        self.catch_up: Callable[[], Awaitable[None]] | None = None

    def keep(self, response_id: str | None, worker_id: str, tenant: str | None) -> None:
        """A worker has answered with it; `on_kept` is told. None: it gave no id. O(1)."""
        if response_id is not None and len(response_id) <= MAX_ID_CHARS:
            stored = StoredResponse(response_id, worker_id, tenant)
            self.hear(stored)
            self.on_kept(stored)

    def hear(self, stored: StoredResponse) -> None:
        """What another process has kept. O(1)."""
        known = self._kept.get(stored.id)
        # Nobody takes over another tenant's response by having a worker give out its id again.
        if known is not None and known.tenant != stored.tenant:
            return
        self._kept[stored.id] = stored
        ids = self._of.setdefault(stored.tenant, OrderedDict())
        ids[stored.id] = None
        ids.move_to_end(stored.id)
        if len(ids) > self._max_kept:
            oldest, _ = ids.popitem(last=False)
            del self._kept[oldest]

    def worker_of(self, response_id: str, tenant: str | None) -> str | None:
        """The worker that has it; None: that is not known here. O(1).

        Raises UnknownResponse if it is another tenant's.
        """
        stored = self._kept.get(response_id)
        if stored is None:
            return None
        if stored.tenant != tenant:
            raise UnknownResponse(response_id)
        self._of[tenant].move_to_end(response_id)
        return stored.worker_id

    def may_come(self, response_id: str) -> bool:
        """It is not known, and may be after `catch_up`. O(1)."""
        return self.catch_up is not None and response_id not in self._kept

    def all(self) -> list[StoredResponse]:
        """From the oldest to the newest of each tenant. O(all)."""
        return [self._kept[one] for ids in self._of.values() for one in ids]
