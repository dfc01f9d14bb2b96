"""What all connections of clients share, and how they end together."""

import asyncio
from collections.abc import Callable
from copy import copy
from typing import Protocol

from radixgate.clock import Clock
from radixgate.gateway.entry.generator import Generator
from radixgate.gateway.heads.own_headers import OwnHeaders
from radixgate.gateway.heads.request_head import HeadCache
from radixgate.gateway.heads.request_reader import FrontLimits
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn


class ClientConnection(Protocol):
    """One of them, as all of them are ended."""

    @property
    def busy(self) -> bool:
        """A request is on its way here, or its answer on its way out; after the drain, of those
        that came later, bytes of a refusal alone."""
        ...

    def last(self) -> None:
        """Close after the answer that is under way, or else after the next one."""
        ...

    def drain(self, before: "Front") -> None:
        """Close, after the answer that is under way. A request that has begun to arrive is for
        `before`."""
        ...

    def abort(self) -> None:
        """Close without another byte; a running answer is cancelled."""
        ...


class Front:
    """What all connections share."""

    def __init__(
        self,
        generator: Generator,
        make_admin: Callable[[], asyncio.Protocol],
        hot_paths: frozenset[bytes],
        limits: FrontLimits,
        clock: Clock,
        deadlines: Deadlines,
        turn: LoopTurn,
        own_headers: OwnHeaders,
        heads: HeadCache,
    ) -> None:
        self.generator, self.make_admin, self.hot_paths = generator, make_admin, hot_paths
        self.limits, self.own_headers, self.heads = limits, own_headers, heads
        self.clock, self.deadlines, self.turn = clock, deadlines, turn
        self.draining = False
        self.drained = False  # who comes now is too late
        self.connections: set[ClientConnection] = set()

    def announce(self) -> None:
        """Each answer is its connection's last, so that clients go elsewhere."""
        self.draining = True
        self.turn.requests.work_off()
        for connection in self.connections:
            connection.last()

    def drain(self, generator: Generator) -> None:
        """Close idle connections now, and each other one after its answer. What begins to come from
        now on is for `generator`."""
        self.announce()
        before = copy(self)
        self.generator, self.drained = generator, True
        for connection in list(self.connections):
            connection.drain(before)

    def busy(self) -> bool:
        """O(connections)."""
        return any(connection.busy for connection in self.connections)

    def abort(self) -> None:
        """Break off everything; running answers are cancelled at their workers."""
        for connection in list(self.connections):
            connection.abort()
