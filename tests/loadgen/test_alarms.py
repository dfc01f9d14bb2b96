"""Sleepers wake when their time has come, never before, and in order."""

import asyncio

import pytest

from radixgate.loadgen.alarms import Alarms
from virtual_time import LoopClock, run_virtually

CLOCK = LoopClock()


def woken(due_s: list[float], now_s: float = 0.0) -> list[tuple[int, float]]:
    """Who woke, in order, and when, of sleepers that came in the order of `due_s`."""

    async def main() -> list[tuple[int, float]]:
        await asyncio.sleep(now_s)
        alarms, seen = Alarms(CLOCK), []

        async def sleeper(number: int, due: float) -> None:
            await alarms.until(due)
            seen.append((number, CLOCK.now()))

        await asyncio.gather(*(sleeper(number, due) for number, due in enumerate(due_s)))
        return seen

    return run_virtually(main())


def test_the_earliest_wakes_first_and_equals_in_the_order_they_came() -> None:
    assert [who for who, _ in woken([3.0, 1.0, 2.0, 1.0, 3.0])] == [1, 3, 2, 0, 4]


def test_each_wakes_at_its_time() -> None:
    assert [at for _, at in woken([3.0, 1.0, 2.0])] == pytest.approx([1.0, 2.0, 3.0])


def test_what_is_past_is_not_slept_for() -> None:
    assert woken([1.0, 4.0, 2.0], now_s=4.0) == [(0, 4.0), (1, 4.0), (2, 4.0)]


def test_one_that_comes_late_does_not_pass_those_that_were_due_before_it() -> None:
    """The loop has been held up: a sleeper's time is past, but it has not woken."""

    class Leaping:
        past_s = 0.0

        def now(self) -> float:
            return CLOCK.now() + self.past_s

    async def main() -> list[str]:
        clock = Leaping()
        alarms, seen = Alarms(clock), []

        async def sleeper(name: str, due_s: float) -> None:
            await alarms.until(due_s)
            seen.append(name)

        first = asyncio.create_task(sleeper("first", 1.0))
        await asyncio.sleep(0)
        clock.past_s = 5.0
        await asyncio.gather(first, sleeper("second", 2.0))
        return seen

    assert run_virtually(main()) == ["first", "second"]


def test_a_cancelled_sleeper_keeps_no_other_asleep() -> None:
    async def main() -> float:
        alarms = Alarms(CLOCK)
        gone = asyncio.create_task(alarms.until(1.0))
        other = asyncio.create_task(alarms.until(2.0))
        await asyncio.sleep(0)
        gone.cancel()
        await other
        return CLOCK.now()

    assert run_virtually(main()) == pytest.approx(2.0)


def test_a_timer_that_rings_too_soon_wakes_nobody() -> None:
    class Behind:
        """Its seconds last twice as long as the loop's."""

        def now(self) -> float:
            return CLOCK.now() / 2

    async def main() -> float:
        await Alarms(Behind()).until(1.0)
        return CLOCK.now()

    assert run_virtually(main()) == pytest.approx(2.0, rel=1e-6)
