"""The whole fleet in turns: blocks of time by a committed schedule, with a clean cut between them.

At the end of a block new requests are held until the fleet has drained, so that no backlog of one
arm is the other's to clear; then the next arm begins with a new policy object on an empty mirror.
Both are needed, as either alone leaves the effect biased by tens of percent.
"""

import logging
from enum import StrEnum
from typing import Protocol

from msgspec import structs

from radixgate.analysis.experiments.records import Block, BlockEvent, Moment
from radixgate.fleet.fleet import Ask
from radixgate.gateway.experiments.hold import Hold
from radixgate.gateway.experiments.logbook import Logbook
from radixgate.gateway.experiments.plan import Switches
from radixgate.gateway.experiments.watched_request import Label
from radixgate.log import fields

# A worker that does not answer the order to flush is not waited for any longer.
FLUSH_MOST_S = 5.0
_log = logging.getLogger(__name__)


class Stage(Protocol):
    """The fleet as a switch needs it."""

    def in_flight(self) -> int:
        """Requests that have been begun and have not ended."""
        ...

    def flush(self) -> None:
        """Order the workers to empty their caches, if that is wanted."""
        ...

    def flushed(self) -> bool:
        """They have, or will not."""
        ...

    def turn_to(self, arm: int) -> int:
        """A new policy of this arm on an empty mirror; how many blocks were dropped from it."""
        ...


class SwitchbackPhase(StrEnum):
    RUNNING = "running"
    HOLDING = "holding"
    FLUSHING = "flushing"
    OVER = "over"


class Switchback:
    """A `Plan` of blocks."""

    def __init__(self, logbook: Logbook, stage: Stage, hold: Hold, drained_at: int) -> None:
        """`drained_at`: so many requests in flight count as none."""
        assert logbook.schedule is not None
        self._logbook = logbook
        self._blocks = logbook.schedule.blocks
        self._stage = stage
        self._hold = hold
        self._drained_at = drained_at
        self._index = 0
        self._phase = SwitchbackPhase.RUNNING
        self._washed_out = False
        self._began_s = 0.0  # the block, its hold apart
        self._hold_began_s = 0.0
        self._drain: BlockEvent | None = None  # noted when what it cost is known
        self.switches = Switches()

    @property
    def over(self) -> bool:
        return self._phase is SwitchbackPhase.OVER

    @property
    def block(self) -> int:
        return self._index

    def open(self) -> None:
        self._begin()

    def label(self, ask: Ask) -> Label:
        """What slips through a hold is placed by the old arm, and belongs to no block."""
        block = self._blocks[self._index]
        if self._phase is not SwitchbackPhase.RUNNING:
            return Label(self._arm(block), -1, washout=True)
        return Label(self._arm(block), block.index, washout=not self._is_washed_out())

    def step(self) -> None:
        now_s = self._logbook.now_s()
        if self._phase is SwitchbackPhase.RUNNING:
            self._run(now_s)
        if self._phase is SwitchbackPhase.HOLDING:
            self._look_at_drain(now_s)
        if self._phase is SwitchbackPhase.FLUSHING:
            self._look_at_flush(now_s)

    def close(self) -> None:
        self._phase = SwitchbackPhase.OVER
        self._hold.open()

    def state(self) -> dict[str, object]:
        block = self._blocks[self._index]
        return {
            "phase": self._phase.value,
            "block": block.index,
            "blocks": len(self._blocks),
            "arm": block.arm,
            "washed_out": self._washed_out,
            "block_ends_in_s": max(0.0, block.ends_s - self._logbook.now_s()),
            "waiting": self._hold.waiting,
            "switches": self.switches.count,
            "holds_capped": self.switches.capped,
            "held_requests": self.switches.held_requests,
            "held_s": self.switches.held_s,
            "longest_hold_s": self.switches.longest_hold_s,
        }

    def _run(self, now_s: float) -> None:
        block = self._blocks[self._index]
        if not self._washed_out and self._is_washed_out():
            self._washed_out = True
            self._note("washed_out", now_s)
        if now_s < block.ends_s:
            return
        self._note("ended", now_s)
        if self._index + 1 == len(self._blocks):
            self._phase = SwitchbackPhase.OVER
            return
        if not self._logbook.declaration.hold_cap_s:
            self._index += 1
            self._begin()
            return
        self._phase = SwitchbackPhase.HOLDING
        self._hold_began_s = now_s
        self._note("holding", now_s, ahead=1)
        self._hold.close()

    def _look_at_drain(self, now_s: float) -> None:
        left = self._stage.in_flight()
        cap_s = self._logbook.declaration.hold_cap_s
        drained = left <= self._drained_at
        if not drained and now_s - self._hold_began_s < cap_s:
            return
        block = self._blocks[self._index + 1]
        moment: Moment = "drained" if drained else "capped"
        self._drain = BlockEvent(
            self._logbook.name, block.index, block.arm, moment, now_s, left=left
        )
        self._phase = SwitchbackPhase.FLUSHING
        self._stage.flush()

    def _look_at_flush(self, now_s: float) -> None:
        assert self._drain is not None
        if self._stage.flushed() or now_s - self._drain.t_s >= FLUSH_MOST_S:
            self._switch(now_s)

    def _switch(self, now_s: float) -> None:
        drain, cost = self._drain, self._hold.cost()
        assert drain is not None
        hold_s = now_s - self._hold_began_s
        self._logbook.note(
            structs.replace(drain, held=cost.requests, held_s=cost.seconds, hold_s=hold_s)
        )
        self.switches.capped += drain.moment == "capped"
        self.switches.held_requests += cost.requests
        self.switches.held_s += cost.seconds
        self.switches.longest_hold_s = max(self.switches.longest_hold_s, hold_s)
        self._index += 1
        self._begin()
        _log.info(
            "experiment switched",
            extra=fields(
                experiment=self._logbook.name,
                block=drain.block,
                arm=drain.arm,
                hold_s=round(hold_s, 3),
                held=cost.requests,
                held_s=round(cost.seconds, 3),
                left=drain.left,
            ),
        )

    def _begin(self) -> None:
        self.switches.count += self._index > 0
        block = self._blocks[self._index]
        forgotten = self._stage.turn_to(self._arm(block))
        now_s = self._logbook.now_s()
        self._note("reset", now_s, forgotten=forgotten)
        self._began_s = now_s
        self._washed_out = False
        self._phase = SwitchbackPhase.RUNNING
        self._note("began", now_s)
        self._hold.open()

    def _is_washed_out(self) -> bool:
        return self._logbook.now_s() - self._began_s >= self._logbook.declaration.washout_s

    def _arm(self, block: Block) -> int:
        return int(block.arm == self._logbook.arm(1))

    def _note(self, moment: Moment, t_s: float, ahead: int = 0, forgotten: int = 0) -> None:
        block = self._blocks[self._index + ahead]
        self._logbook.note(
            BlockEvent(self._logbook.name, block.index, block.arm, moment, t_s, forgotten=forgotten)
        )
