"""A switchback's blocks by a fake clock: holds, caps, washouts, and whose a request is."""

from pathlib import Path

import pytest

from clocks import FakeClock
from experiment_parts import FakeStage, at_once, declaration, events, logbook, question, records
from radixgate.analysis.experiments.records import BlockEvent
from radixgate.analysis.experiments.schedule import schedule_of
from radixgate.gateway.experiments.hold import Hold
from radixgate.gateway.experiments.logbook import Logbook
from radixgate.gateway.experiments.switchback import FLUSH_MOST_S, Switchback
from radixgate.gateway.experiments.watched_request import Label


class Waiting:
    """A request that waits."""

    size = 100

    def __init__(self) -> None:
        self.waited_s: float | None = None

    def go(self, waited_s: float) -> None:
        self.waited_s = waited_s


class World:
    def __init__(self, folder: Path, **of: object) -> None:
        self.clock = FakeClock()
        self.book: Logbook = logbook(folder, self.clock, **of)
        self.stage = FakeStage()
        self.hold = Hold(self.clock, at_once)
        self.plan = Switchback(self.book, self.stage, self.hold, drained_at=0)
        self.plan.open()

    def at(self, t_s: float) -> None:
        """Go on to this time of the experiment, a multiple of an eighth, looking at each."""
        while self.book.now_s() < t_s:
            self.clock.advance(0.125)
            self.plan.step()

    def label(self) -> Label:
        return self.plan.label(question())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def arms() -> list[str]:
    return [block.arm for block in schedule_of(declaration()).blocks]


def test_an_idle_fleet_switches_as_scheduled(world: World) -> None:
    world.at(400.0)
    world.plan.step()
    assert world.plan.over
    order = arms()
    assert sorted(order[:2]) == sorted(order[2:]) == ["A", "B"]
    assert world.stage.turns == [int(arm == "B") for arm in order]
    told = events(world.book)
    assert [moment for moment, *_ in told[:3]] == ["reset", "began", "washed_out"]
    assert [moment for moment, *_ in told[3:9]] == [
        "ended",
        "holding",
        "drained",
        "reset",
        "began",
        "washed_out",
    ]
    assert told[-1] == ("ended", 3, order[3], 400.0)
    assert world.plan.switches.count == 3
    assert world.plan.switches.capped == 0


def test_what_is_dispatched_soon_after_a_switch_is_marked(world: World) -> None:
    first = int(arms()[0] == "B")
    assert world.label() == Label(first, 0, washout=True)
    world.at(19.875)
    assert world.label().washout
    world.at(20.0)
    assert world.label() == Label(first, 0, washout=False)
    world.at(99.875)
    assert world.label() == Label(first, 0, washout=False)
    world.at(100.125)
    assert world.label() == Label(1 - first, 1, washout=True)
    world.at(120.25)
    assert not world.label().washout


def test_a_hold_ends_when_the_last_request_has_and_tells_what_it_cost(world: World) -> None:
    world.stage.busy = 2
    world.at(100.0)
    assert world.hold.closed
    early, late = Waiting(), Waiting()
    assert world.hold.take(early)
    world.at(103.0)
    assert world.hold.take(late)
    assert world.label() == Label(int(arms()[0] == "B"), -1, washout=True), "it slipped through"
    world.at(104.0)
    assert world.stage.turns == [int(arms()[0] == "B")]
    world.stage.busy = 0
    world.plan.step()  # as the gateway does when a request has ended
    assert early.waited_s == 4.0
    assert late.waited_s == 1.0
    (drained,) = [e for e in records(world.book) if getattr(e, "moment", "") == "drained"]
    assert isinstance(drained, BlockEvent)
    assert (drained.block, drained.held, drained.left) == (1, 2, 0)
    assert (drained.held_s, drained.hold_s) == (5.0, 4.0)
    assert world.plan.switches.held_requests == 2
    # The block ends when it was to end, and its washout begins after the hold.
    assert world.label().washout
    world.at(123.875)
    assert world.label().washout
    world.at(124.125)
    assert not world.label().washout


def test_a_hold_is_capped_and_says_how_many_were_left(world: World) -> None:
    world.stage.busy = 3
    world.at(109.875)
    assert world.hold.closed
    world.at(110.125)
    assert not world.hold.closed
    (capped,) = [e for e in records(world.book) if getattr(e, "moment", "") == "capped"]
    assert isinstance(capped, BlockEvent)
    assert (capped.left, capped.held, capped.hold_s) == (3, 0, 10.0)
    assert world.plan.switches.capped == 1
    assert world.label().block == 1


def test_so_many_in_flight_may_count_as_drained(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.plan = Switchback(world.book, world.stage, world.hold, drained_at=2)
    world.plan.open()
    world.stage.busy = 2
    world.at(100.125)
    assert world.label().block == 1


def test_workers_are_flushed_between_drain_and_reset_but_not_waited_for_forever(
    world: World,
) -> None:
    world.stage.flush_done = False
    world.at(102.0)
    assert world.stage.flushes == 1
    assert world.hold.closed
    assert len(world.stage.turns) == 1
    world.stage.flush_done = True
    world.at(102.125)
    assert not world.hold.closed
    assert len(world.stage.turns) == 2
    world.stage.flush_done = False
    world.at(200.0 + FLUSH_MOST_S - 0.25)
    assert len(world.stage.turns) == 2
    world.at(200.0 + FLUSH_MOST_S + 0.25)
    assert len(world.stage.turns) == 3


def test_without_a_hold_nothing_stands_still(tmp_path: Path) -> None:
    world = World(tmp_path, hold_cap_s=0.0)
    world.stage.busy = 5
    world.at(100.0)
    assert not world.hold.closed
    moments = [moment for moment, *_ in events(world.book)]
    assert moments == ["reset", "began", "washed_out", "ended", "reset", "began"]
    assert world.label().block == 1


def test_closing_in_a_hold_lets_everybody_go(world: World) -> None:
    world.stage.busy = 1
    world.at(101.0)
    waiting = Waiting()
    assert world.hold.take(waiting)
    world.plan.close()
    assert waiting.waited_s == 0.0
    assert world.plan.over
    assert not world.hold.closed


def test_the_reset_tells_what_was_dropped(world: World) -> None:
    resets = [e for e in records(world.book) if getattr(e, "moment", "") == "reset"]
    assert [getattr(e, "forgotten", 0) for e in resets] == [40]
