"""Requests that wait for a switch: in order, bounded, free to leave, and what that costs."""

from collections.abc import Callable

import pytest

from clocks import FakeClock
from radixgate.gateway.experiments import hold as hold_module
from radixgate.gateway.experiments.hold import MOST_HELD_BYTES, Held, Hold


class Later:
    """The next turn of a loop, when the test says so."""

    def __init__(self) -> None:
        self.work: list[Callable[[], None]] = []

    def __call__(self, work: Callable[[], None]) -> None:
        self.work.append(work)

    def turn(self) -> None:
        work, self.work = self.work, []
        for one in work:
            one()


class Waiting:
    def __init__(self, name: int, gone: list[int], size: int = 10) -> None:
        self.name = name
        self.size = size
        self._gone = gone

    def go(self, waited_s: float) -> None:
        self._gone.append(self.name)


def test_an_open_hold_takes_nobody() -> None:
    hold = Hold(FakeClock(), Later())
    assert not hold.take(Waiting(1, []))
    assert hold.cost() == Held(0, 0.0)


def test_they_go_in_order_and_not_all_at_once() -> None:
    clock, later, gone = FakeClock(), Later(), list[int]()
    hold = Hold(clock, later)
    hold.close()
    for name in range(100):
        assert hold.take(Waiting(name, gone))
    clock.advance(2.0)
    assert hold.cost() == Held(100, 200.0)
    hold.open()
    assert gone == list(range(64))
    # Who comes meanwhile does not overtake.
    assert hold.take(Waiting(100, gone))
    later.turn()
    assert gone == list(range(101))
    assert not hold.take(Waiting(101, gone))
    assert hold.cost() == Held(1, 0.0)


def test_who_leaves_does_not_go_and_has_still_waited() -> None:
    clock, gone = FakeClock(), list[int]()
    hold = Hold(clock, Later())
    hold.close()
    leaving = Waiting(1, gone)
    hold.take(leaving)
    hold.take(Waiting(2, gone))
    clock.advance(1.0)
    assert hold.leave(leaving)
    assert not hold.leave(leaving)
    clock.advance(1.0)
    assert hold.cost() == Held(2, 3.0)
    hold.open()
    assert gone == [2]
    assert hold.waiting == 0


def test_a_full_hold_sends_the_next_one_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold_module, "MOST_HELD", 2)
    hold = Hold(FakeClock(), Later())
    hold.close()
    assert hold.take(Waiting(1, []))
    assert hold.take(Waiting(2, []))
    assert not hold.take(Waiting(3, []))
    large = Hold(FakeClock(), Later())
    large.close()
    assert large.take(Waiting(1, [], MOST_HELD_BYTES))
    assert not large.take(Waiting(2, [], 1))


def test_closed_again_it_keeps_those_that_have_not_gone() -> None:
    later, gone = Later(), list[int]()
    hold = Hold(FakeClock(), later)
    hold.close()
    for name in range(70):
        hold.take(Waiting(name, gone))
    hold.open()
    hold.close()
    later.turn()
    assert len(gone) == 64
    hold.open()
    assert gone == list(range(70))
