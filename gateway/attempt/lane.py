"""The short way of a stream's events to its client, once the stream flows.

Hundreds of streams take turns, so that what one event needs has left the processor's caches when
the next one comes. Each object on the way is another miss; here they lie in two. And each function
on the way is one as well, where few streams run: here one takes a whole step.
"""

import asyncio
from array import array
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from radixgate.gateway.loop.loop_turn import LoopTurn

# Tokens that are told of together when credit for them is to go back.
NOTED_TOKENS = 16
# The line before a chunk of so many bytes: an event of one token is shorter, as a rule.
_SIZE_LINES = tuple(b"%x\r\n" % size for size in range(1_024))
_json = msgspec.json.Encoder().encode


class Gaps(Protocol):
    """Counts how long it is from one event to the next."""

    def observe(self, seconds: float, times: int = 1) -> None: ...


class HasGaps(Protocol):
    """Has gaps, from time to time other ones."""

    @property
    def itl(self) -> Gaps: ...


class ChunkLane:
    """To a client that is sent chunks: takes what `Downstream.on_body` takes."""

    __slots__ = ("last", "metrics", "now", "sent_at", "to", "turn")

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


class Flow:
    """A choice whose single tokens make events that differ by their text alone."""

    __slots__ = ("after", "before", "frame_bytes", "ids", "lane", "untaken")

    def __init__(self, lane: ChunkLane, ids: "array[int]", before: bytes, after: bytes) -> None:
        """`ids`: gets each token's. `before`, `after`: of an event, what stands around its text."""
        self.lane = lane
        self.ids = ids
        self.before = before
        self.after = after + b"\r\n"
        self.frame_bytes = len(before) + len(after)
        self.untaken = 0  # tokens since its owner has looked


class Flows:
    """What flows of one worker, by handle. All of it is of one gateway: one clock and one loop."""

    def __init__(self) -> None:
        self._flows: dict[int, Flow] = {}
        self._stepped_at = 0.0

    def begin(self, handle: int, flow: Flow) -> None:
        self._flows[handle] = flow

    def end(self, handle: int) -> None:
        """Whether it flows or not."""
        self._flows.pop(handle, None)

    def clear(self) -> None:
        self._flows.clear()

    def take(
        self, handles: Iterable[int], token_ids: Iterable[int], texts: Iterable[str]
    ) -> tuple[list[tuple[int, int, str]], list[int]]:
        """Send a step's single tokens, all at one time.

        Returns those of handles that do not flow, and the handles that have NOTED_TOKENS or more
        untaken. O(tokens), a microsecond each.
        """
        tokens = zip(handles, token_ids, texts, strict=True)
        flows = self._flows
        if not flows:
            return list(tokens), []
        rest: list[tuple[int, int, str]] = []
        owing: list[int] = []
        row: list[tuple[asyncio.Transport, bytes]] = []
        lane = next(iter(flows.values())).lane
        now, stepped_at, together = lane.now(), self._stepped_at, 0
        for handle, token_id, text in tokens:
            flow = flows.get(handle)
            if flow is None:
                rest.append((handle, token_id, text))
                continue
            flow.ids.append(token_id)
            flow.untaken += 1
            if flow.untaken >= NOTED_TOKENS:
                owing.append(handle)
            if not text:
                continue
            lane = flow.lane
            # Who was in the last step waits as long as all others who were.
            if lane.sent_at == stepped_at:
                together += 1
            else:
                lane.metrics.itl.observe(now - lane.sent_at)
            lane.sent_at = now
            raw = _json(text)
            size = flow.frame_bytes + len(raw)
            line = _SIZE_LINES[size] if size < 1_024 else b"%x\r\n" % size
            row.append((lane.to, b"".join((line, flow.before, raw, flow.after))))
        if together:
            lane.metrics.itl.observe(now - stepped_at, together)
        self._stepped_at = now
        lane.turn.put_row(row)
        return rest, owing
