"""Places are held, waited for by priority and arrival, and given back exactly once."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radixgate.errors import TooManyRequests
from radixgate.gateway.entry.waiting_line import WaitingLine
from radixgate.gateway.settings.limits_config import LimitsConfig


class Somebody:
    def __init__(self, name: str, into: list[str], priority: int = 0) -> None:
        self.name = name
        self.priority = priority
        self._into = into

    def admitted(self) -> None:
        self._into.append(self.name)


def come(places: WaitingLine, somebody: Somebody) -> bool:
    """True: at once. Raises TooManyRequests."""
    if places.enter():
        return True
    places.join(somebody)
    return False


def line(most: int = 1, waiting: int = 3) -> WaitingLine:
    return WaitingLine(LimitsConfig(max_concurrent_requests=most, queue_size=waiting))


async def test_the_highest_priority_goes_first_and_then_the_first_come() -> None:
    came: list[str] = []
    places = line()
    assert places.enter()
    people = {name: Somebody(name, came, priority) for name, priority in (("a", 0), ("b", 5))}
    people["c"] = Somebody("c", came, 5)
    assert not any(come(places, one) for one in people.values())
    for _ in ("first", "b", "c"):
        places.leave()
        await asyncio.sleep(0)
        places.check()
    assert came == ["b", "c", "a"]


async def test_a_line_that_is_full_refuses_with_its_numbers() -> None:
    places = line(most=1, waiting=1)
    for name in "ab":
        come(places, Somebody(name, []))
    with pytest.raises(TooManyRequests, match=r"1 requests .* 1 wait") as caught:
        come(places, Somebody("c", [], priority=9))
    assert (caught.value.status, caught.value.retry_after_s) == (429, 1.0)


async def test_who_comes_later_does_not_pass_who_waits() -> None:
    came: list[str] = []
    places = line()
    places.enter()
    come(places, Somebody("waits", came))
    places.leave()
    assert not come(places, Somebody("late", came))
    await asyncio.sleep(0)
    assert came == ["waits"]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["enter", "leave-running", "leave-waiting"]), st.integers(0, 3)),
        max_size=80,
    )
)
def test_counts_are_right_whatever_happens(steps: list[tuple[str, int]]) -> None:
    async def play() -> None:
        came: list[str] = []
        places = line(most=2, waiting=4)
        people: dict[str, Somebody] = {}
        running: set[str] = set()
        for number, (what, value) in enumerate(steps):
            waiting = [name for name in people if name not in running]
            if what == "enter":
                one = Somebody(f"{number}", came, value)
                try:
                    if come(places, one):
                        running.add(one.name)
                except TooManyRequests:
                    assert len(waiting) == 4
                    continue
                people[one.name] = one
            else:
                pool = sorted(running) if what == "leave-running" else waiting
                if pool:
                    name = pool[value % len(pool)]
                    one = people.pop(name)
                    if name in running:
                        places.leave()
                        running.discard(name)
                    else:
                        places.give_up(one)
            await asyncio.sleep(0)
            running.update(came)
            came.clear()
            places.check()
            assert places.running == len(running)
            assert places.waiting == len(people) - len(running)

    asyncio.run(play())
