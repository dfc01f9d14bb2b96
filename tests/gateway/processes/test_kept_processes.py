"""Children that are kept: what ends or cannot start is started again, more and more slowly."""

import asyncio
import errno
import logging

import pytest

from radixgate.gateway.processes.kept_processes import KeptProcesses


class Child:
    """A process that runs until it gets a signal."""

    def __init__(self) -> None:
        self.returncode: int | None = None
        self._over = asyncio.Event()

    async def wait(self) -> int:
        await self._over.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, signal: int) -> None:
        self.returncode = -signal
        self._over.set()


class World:
    """Starts children; pauses take a turn of the loop and are written down."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.started: list[tuple[int, Child]] = []
        self.pauses: list[float] = []
        self.kept = KeptProcesses(self._start, self._sleep)

    async def _start(self, index: int) -> Child:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        child = Child()
        self.started.append((index, child))
        return child

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_who_dies_soon_is_started_again_more_and_more_slowly() -> None:
    world = World()
    world.kept.keep(2)
    await turns()
    assert [index for index, _ in world.started] == [0, 1]
    assert not world.kept.one_ended.is_set()
    for _ in range(8):
        world.started[-1][1].send_signal(9)
        await turns()
    assert [index for index, _ in world.started] == [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    assert world.pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert world.kept.one_ended.is_set()
    await world.kept.kill(9)
    assert all(child.returncode == -9 for _, child in world.started)


async def test_who_cannot_be_started_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World(refusals=3)
    with caplog.at_level(logging.WARNING):
        world.kept.keep(1)
        await turns()
    assert [index for index, _ in world.started] == [0]
    assert world.pauses == [0.1, 0.2, 0.4]
    assert world.kept.one_ended.is_set()
    assert [record.message for record in caplog.records] == [
        "a process could not be started; it is started again"
    ] * 3
    await world.kept.kill(9)


async def test_nothing_is_started_again_at_the_end() -> None:
    world = World()
    world.kept.keep(2)
    await turns()
    ending = asyncio.ensure_future(world.kept.ended(60.0))
    await turns()
    assert not ending.done()
    world.kept.signal(15)
    await ending
    await turns()
    assert len(world.started) == 2
    assert world.pauses == []
    await world.kept.kill(9)
    assert [child.returncode for _, child in world.started] == [-15, -15]
