"""Child processes that are kept: whichever ends, or cannot be started, is started again."""

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Protocol

from radixgate import die_with_parent
from radixgate.log import fields

# A child that ends soon after its start is started again more and more slowly.
SOON_S = 5.0
LEAST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
_log = logging.getLogger(__name__)


class Running(Protocol):
    """A child, as asyncio tells of it."""

    @property
    def returncode(self) -> int | None:
        """None: it runs."""
        ...

    async def wait(self) -> int: ...

    def send_signal(self, number: int, /) -> None: ...


Start = Callable[[int], Awaitable[Running]]  # by the child's number; OSError: it cannot be now
Sleep = Callable[[float], Awaitable[None]]


class KeptProcesses:
    """So many children, each with a number that it keeps over all its lives."""

    def __init__(self, start: Start, sleep: Sleep = asyncio.sleep) -> None:
        self._start = start
        self._sleep = sleep
        self._running: dict[int, Running] = {}  # the last of each number, ended or not
        self._tasks: list[asyncio.Task[None]] = []
        self._ending = False
        self.one_ended = asyncio.Event()  # or could not be started

    def keep(self, count: int) -> None:
        """Start them, on the running loop."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._keep(index)) for index in range(count)]

    def signal(self, number: int) -> None:
        """To all that run."""
        for child in self._alive():
            child.send_signal(number)

    async def ended(self, within_s: float) -> None:
        """Nothing is started again; those that run are waited for so long."""
        self._ending = True
        ends = [asyncio.ensure_future(child.wait()) for child in self._alive()]
        if ends:
            await asyncio.wait(ends, timeout=within_s)

    async def kill(self, number: int) -> None:
        """Nothing is started again, and whoever runs is ended by this signal."""
        self._ending = True
        for task in self._tasks:
            task.cancel()
        self.signal(number)
        for child in list(self._running.values()):
            await child.wait()

    def _alive(self) -> Iterator[Running]:
        return (child for child in self._running.values() if child.returncode is None)

    async def _keep(self, index: int) -> None:
        loop, pause_s = asyncio.get_running_loop(), 0.0
        while not self._ending:
            began = loop.time()
            try:
                child = self._running[index] = await self._start(index)
            except OSError as error:  # no memory, no descriptors, too many processes
                what, why = "a process could not be started", str(error)
            else:
                if self._ending:
                    child.send_signal(signal.SIGKILL)  # it has served nobody
                what, why = "a process has died", f"exit code {await child.wait()}"
            if self._ending:
                return
            self.one_ended.set()
            long = loop.time() - began >= SOON_S
            pause_s = 0.0 if long else min(max(LEAST_PAUSE_S, 2 * pause_s), LONGEST_PAUSE_S)
            told = fields(process=index, why=why, pause_s=pause_s)
            _log.warning(f"{what}; it is started again", extra=told)
            await self._sleep(pause_s)


async def start_python(*argv: str) -> asyncio.subprocess.Process:
    """Our interpreter with these arguments, in a session of its own; it dies with this process.

    Raises OSError if there cannot be another process.
    """
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(Path(die_with_parent.__file__))),
        *(str(os.getpid()), sys.executable, *argv),
        stdin=DEVNULL,
        start_new_session=True,
    )
