"""What the processes of one gateway tell each other of what they have begun and nobody reports yet.

A reader that is slow misses the oldest placements, which would leave by themselves; of loads it
always gets the last ones of every worker.
"""

from collections import deque

import msgspec

from radixgate.fleet.identity import MirrorKey

# Placements that wait for one reader: some hundred long prompts. Ends that have no placement any
# more do nothing.
MAX_WAITING_BYTES = 4 * 1024 * 1024
MAX_WAITING_ENDS = 65_536
_ENTRY_BYTES = 128


class Share(msgspec.Struct, frozen=True, array_like=True):
    """What one process has under way at one worker; it replaces what it said before."""

    peer: int
    worker_id: str
    requests: int
    tokens: int
    uncached_tokens: int


class Placed(msgspec.Struct, frozen=True, array_like=True):
    """A prompt sent to a worker."""

    peer: int
    number: int  # of the placement; the process counts them
    worker_id: str
    key: MirrorKey
    ids: bytes  # 8 native bytes a block
    mark: int  # of the prompt, as `recent_prompts` tells prompts apart; 0: nobody asks
    keep_s: float


class PlacementEnd(msgspec.Struct, frozen=True, array_like=True):
    """What became of a placement."""

    peer: int
    number: int
    computed: bool
    cached_blocks: int | None  # as the reply told


class News(msgspec.Struct, frozen=True):
    """What has come together since the last one."""

    loads: list[Share]
    placed: list[Placed]
    ended: list[PlacementEnd]


class NewsBox:
    """News for one reader until it takes them. Bounded."""

    def __init__(self, max_bytes: int = MAX_WAITING_BYTES) -> None:
        self._max_bytes = max_bytes
        self._loads: dict[tuple[int, str], Share] = {}  # the last of each process and worker
        self._placed: deque[Placed] = deque()
        self._ended: deque[PlacementEnd] = deque(maxlen=MAX_WAITING_ENDS)
        self._bytes = 0
        self.dropped = 0  # placements that the reader never saw

    def add(self, news: News) -> None:
        for share in news.loads:
            self.load(share)
        for placed in news.placed:
            self.place(placed)
        self._ended.extend(news.ended)

    def load(self, share: Share) -> None:
        self._loads[share.peer, share.worker_id] = share

    def place(self, placed: Placed) -> None:
        self._placed.append(placed)
        self._bytes += _size(placed)
        while self._bytes > self._max_bytes and len(self._placed) > 1:
            self._bytes -= _size(self._placed.popleft())
            self.dropped += 1

    def end(self, ended: PlacementEnd) -> None:
        self._ended.append(ended)

    def forget(self, peer: int) -> None:
        """The process has died: what it had under way is nothing any more."""
        for key in [key for key in self._loads if key[0] == peer]:
            del self._loads[key]

    def take(self) -> News | None:
        """All of it; None: there is nothing."""
        if not (self._loads or self._placed or self._ended):
            return None
        news = News(list(self._loads.values()), list(self._placed), list(self._ended))
        self._loads.clear()
        self._placed.clear()
        self._ended.clear()
        self._bytes = 0
        return news


def _size(placed: Placed) -> int:
    return len(placed.ids) + _ENTRY_BYTES
