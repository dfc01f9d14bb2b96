"""The short way of a stream's events to its client, once the stream flows.

Hundreds of streams take turns, so that what one event needs has left the processor's caches when
the next one comes. Each object on the way is another miss; here they lie in one.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from radixgate.gateway.loop_turn import LoopTurn


class Gaps(Protocol):
    """Counts how long it is from one event to the next."""

    def observe(self, seconds: float) -> None: ...


class Metrics(Protocol):
    """Has gaps, from time to time other ones."""

    @property
    def itl(self) -> Gaps: ...


class ChunkLane:
    """To a client that is sent chunks: takes what `Downstream.on_body` takes, in whole events."""

    __slots__ = ("_metrics", "_now", "_to", "_turn", "sent_at")

    def __init__(self, turn: LoopTurn, to: asyncio.Transport) -> None:
        self._turn = turn
        self._to = to

    def begin(self, now: Callable[[], float], metrics: Metrics, sent_at: float) -> None:
        """Before the first is sent. `sent_at`: when the last one went another way."""
        self._now, self._metrics, self.sent_at = now, metrics, sent_at

    def send(self, event: bytes) -> None:
        now = self._now()
        self._metrics.itl.observe(now - self.sent_at)
        self.sent_at = now
        self._turn.put(self._to, b"%x\r\n%b\r\n" % (len(event), event))
