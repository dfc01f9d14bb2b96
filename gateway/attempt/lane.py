"""The short way of a stream's events to its client."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from radixgate.gateway.loop.loop_turn import LoopTurn

try:
    from radixgate.gateway.attempt.flow_compiled import SentAt
except ImportError:  # it was installed without a compiler

    class SentAt:  # type: ignore[no-redef]
        """When it was sent to last, on the gateway's clock."""

        __slots__ = ("sent_at",)
        sent_at: float


class Gaps(Protocol):
    """Counts how long it is from one event to the next."""

    def observe(self, seconds: float, times: int = 1) -> None: ...


class HasGaps(Protocol):
    """Has gaps, from time to time other ones."""

    @property
    def itl(self) -> Gaps: ...


class ChunkLane(SentAt):
    """To a client that is sent chunks: takes what `Downstream.on_body` takes."""

    __slots__ = ("last", "metrics", "now", "to", "turn")

    def __init__(self, turn: LoopTurn, to: asyncio.Transport) -> None:
        self.turn = turn
        self.to = to

    def begin(
        self, now: Callable[[], float], metrics: HasGaps, sent_at: float, last: bytes
    ) -> None:
        """Before the first is sent. `last`: a piece that went another way, at `sent_at`."""
        self.now, self.metrics, self.sent_at, self.last = now, metrics, sent_at, last

    def send(self, piece: bytes) -> None:
        now = self.now()
        self.metrics.itl.observe(now - self.sent_at)
        self.sent_at, self.last = now, piece
        self.turn.put(self.to, b"%x\r\n%b\r\n" % (len(piece), piece))
