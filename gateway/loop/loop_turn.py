"""One turn of the loop: what it has to do is done by kind, each kind in a row, and all writes last.

What is done again in a row costs a third less: the processor has its code and data at hand, and
has learned its way through it. That holds for some 1,000 steps of the interpreter and no more: so
a request, which takes 3,400, goes through a turn in several rows. And a write wakes the process at
the other end, which is most of its cost: of several in a row the first wakes it, and it is still
awake for the others. But to be called at the end of a turn costs something, so that it has to be
worth it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from radixgate.gateway.loop.row_writes import RowWrites, give_up

_log = logging.getLogger(__name__)
# From here on the copying is what a piece costs, read or written. So one connection keeps less than
# twice as much waiting to be written, and all of them no more than one turn of the loop has read.
AT_ONCE_BYTES = 16_384
# Of one kind read and not worked off; with them no more than a megabyte waits.
MOST_PIECES = 64
# So many turns are looked at; with fewer writes than that in all, so many are made at once before
# turns are looked at again.
LOOKED_AT_TURNS = 16
WORTH_IT_WRITES = 40
AT_ONCE_WRITES = 128


class Reader(Protocol):
    """A connection that is read."""

    def received(self, data: bytes) -> None:
        """The next piece, in its order."""
        ...

    def broke(self, exc: Exception) -> None:
        """`received` raised this, a fault of ours: end it, and tell whom it concerns."""
        ...


class LoopTurn:
    """What waits for the end of this turn. One loop's, as its users are.

    A slow peer's bytes go on to its transport, whose buffer tells its protocol to pause.
    """

    def __init__(self, writes: RowWrites | None = None) -> None:
        """`writes`: who makes them; None: each transport its own."""
        self.writes = writes or RowWrites()
        self.answers = Intake(self)
        self.requests = Intake(self)
        self.at_once = 0  # writes that do not wait; above zero nothing waits
        self._steps: list[Callable[[], None]] = []
        self._waiting: dict[asyncio.Transport, bytes] = {}  # to be written, in order
        self._called = False  # the loop will end it
        self._turns = self._writes = 0  # of those that are looked at

    def then(self, step: Callable[[], None]) -> None:
        """Do it in the next row of this turn, with its like."""
        if self.at_once:
            step()
            return
        self._steps.append(step)
        if not self._called:
            self.call()

    def put(self, transport: asyncio.Transport, data: bytes) -> None:
        """Write `data` behind what waits for this connection."""
        if self.at_once:
            self.at_once -= 1
            transport.write(data)
            return
        waiting = self._waiting
        if transport in waiting:
            data = waiting.pop(transport) + data
        if len(data) >= AT_ONCE_BYTES:
            transport.write(data)
            return
        waiting[transport] = data
        if not self._called:
            self.call()

    def put_row(self, row: dict[asyncio.Transport, bytes]) -> None:
        """`put` each, whatever becomes of the others. It is given away: if nothing waits yet, it is
        what waits from here on. Pieces are short, a token's text, so that none goes out at once
        for its length."""
        if self.at_once or not self._waiting.keys().isdisjoint(row):
            for transport, data in row.items():
                try:
                    self.put(transport, data)
                except Exception:
                    give_up(transport)
            return
        if self._waiting:
            self._waiting.update(row)
        else:
            self._waiting = row
        if row and not self._called:
            self.call()

    def send(self, transport: asyncio.Transport) -> None:
        """Write what waits for it now: something else is to be done to it."""
        data = self._waiting.pop(transport, None)
        if data is not None:
            transport.write(data)

    def call(self) -> None:
        """See to it that this turn is ended."""
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self.end)

    def end(self) -> None:
        """Work off all that was read, take the next steps, then write all that waits."""
        # Answers first: what they free is there for the requests.
        if self.answers.pieces:
            self.answers.work_off()
        if self.requests.pieces:
            self.requests.work_off()
        while self._steps:
            self._take_steps()
        self._called = False
        waiting, self._waiting = self._waiting, {}
        self.writes.write(waiting)
        # Last, so that nothing that a write brings about is made before what still waits.
        self._look(len(waiting))

    def _take_steps(self) -> None:
        """One row; what follows from it is the next."""
        steps, self._steps = self._steps, []
        for step in steps:
            try:
                step()
            except Exception:
                _log.exception("a step of a request could not be taken")

    def _look(self, writes: int) -> None:
        self._turns += 1
        self._writes += writes
        if self._turns == LOOKED_AT_TURNS:
            if self._writes < WORTH_IT_WRITES:
                self.at_once = AT_ONCE_WRITES
            self._turns = self._writes = 0


class Intake:
    """Pieces of one kind that were read in this turn, in order."""

    __slots__ = ("_turn", "pieces")

    def __init__(self, turn: LoopTurn) -> None:
        self._turn = turn
        self.pieces: list[tuple[Reader, bytes]] = []

    def take(self, reader: Reader, data: bytes) -> None:
        """Have `reader` receive it behind all that was read before."""
        pieces = self.pieces
        if self._turn.at_once or len(data) >= AT_ONCE_BYTES:
            if pieces:
                self.work_off()
            _receive(((reader, data),))
            return
        if not pieces:
            self._turn.call()
        pieces.append((reader, data))
        if len(pieces) == MOST_PIECES:
            self.work_off()

    def work_off(self) -> None:
        """Now: the turn is over, or something else has happened to one of the connections."""
        pieces, self.pieces = self.pieces, []
        _receive(pieces)


def _receive(pieces: Iterable[tuple[Reader, bytes]]) -> None:
    """Raises nothing: the other connections must not lose their pieces, nor the turn its end."""
    for reader, data in pieces:
        try:
            reader.received(data)
        except Exception as exc:
            _log.exception("what a connection brought could not be worked off")
            try:
                reader.broke(exc)
            except Exception:
                _log.exception("and its connection could not be ended")
