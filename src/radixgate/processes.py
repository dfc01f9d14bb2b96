"""Child processes that die with us, tell when they are ready, and never block on a full pipe."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from radixgate.errors import ProcessFailed

_WRAPPER = str(Path(__file__).with_name("die_with_parent.py"))
# What is kept of a child's output. Its pipe is read at once whatever happens to the lines: older
# ones are dropped here, and the rest of a longer line is cut off.
TAIL_LINES = 50
LINE_BYTES = 8_192
# Something that the child started may hold its output open for ever; its last words are read for
# this long after it ended.
_LAST_WORDS_S = 0.1


class Child:
    """A running program in a session of its own: a Ctrl-C at the terminal reaches only us.

    The kernel kills it when the *thread* that started it ends: start children from the main thread.
    """

    def __init__(
        self, name: str, transport: asyncio.SubprocessTransport, output: "_Output"
    ) -> None:
        self.name = name
        self._transport = transport
        self._output = output

    @classmethod
    async def start(
        cls,
        name: str,
        argv: Sequence[str],
        *,
        ready: str | None = None,
        on_line: Callable[[str], None] = lambda line: None,
    ) -> "Child":
        """Run `argv`, stdout and stderr read as one.

        `ready` is a pattern searched in each line, see `wait_ready`; `on_line` gets every line,
        without its end, on the loop.
        """
        pattern = None if ready is None else re.compile(ready)
        transport, output = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Output(pattern, on_line),
            *(sys.executable, "-I", "-S", _WRAPPER, str(os.getpid()), *argv),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        return cls(name, transport, output)

    @property
    def pid(self) -> int:
        """Also the id of its session and process group."""
        return self._transport.get_pid()

    @property
    def exit_code(self) -> int | None:
        """None while it runs; -n when signal n ended it."""
        return self._transport.get_returncode()

    def tail(self) -> list[str]:
        """Its last lines, at most `TAIL_LINES`, each cut to `LINE_BYTES`."""
        return list(self._output.tail)

    async def wait_ready(self, timeout_s: float) -> re.Match[str]:
        """The match of the ready line. Raises ProcessFailed, with the last lines, if the child
        ends without one or takes longer; in the second case it still runs.
        """
        await asyncio.wait({self._output.ready}, timeout=timeout_s)
        if not self._output.ready.done():
            raise ProcessFailed(self.report(f"was not ready after {timeout_s:g} s"))
        match = self._output.ready.result()
        if match is None:
            raise ProcessFailed(
                self.report(f"{how_it_ended(await self.wait())} before it was ready")
            )
        return match

    async def wait(self) -> int:
        """Its exit code, once it has ended and its last words are read."""
        await asyncio.wait({self._output.ended})
        code = self.exit_code
        assert code is not None
        return code

    async def stop(self, grace_s: float) -> int:
        """SIGTERM, then SIGKILL if it runs on for `grace_s`; its exit code. Again is harmless."""
        self.send(signal.SIGTERM)
        try:
            await asyncio.wait({self._output.ended}, timeout=grace_s)
        finally:  # also when cancelled: no child is left behind
            self.kill()
        return await self.wait()

    def kill(self) -> None:
        """SIGKILL to it and to what it started in its group, at once."""
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """A signal to the child alone; none if it has ended."""
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                self._transport.send_signal(number)

    def report(self, what: str) -> str:
        """`NAME what`, and its last lines below."""
        return "\n  ".join([f"{self.name} {what}", *self.tail()])


def how_it_ended(exit_code: int) -> str:
    """An exit code in words: `ended with code 3`, `was ended by SIGKILL`."""
    if exit_code >= 0:
        return f"ended with code {exit_code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"was ended by {names.get(-exit_code, f'signal {-exit_code}')}"


class _Output(asyncio.SubprocessProtocol):
    """Cuts what a child writes into lines, on the loop, as it arrives."""

    def __init__(self, pattern: re.Pattern[str] | None, on_line: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[re.Match[str] | None] = self._loop.create_future()  # None: never
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._pattern = pattern
        self._on_line = on_line
        self._line = bytearray()  # the one whose end has not come
        self._transport: asyncio.BaseTransport | None = None
        self._end_by: asyncio.TimerHandle | None = None  # set once the process has exited
        self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._take(bytes(self._line + end))
            self._line.clear()
        self._line += rest
        del self._line[LINE_BYTES:]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if self._closed:
            return
        self._closed = True
        if self._line:
            self._take(bytes(self._line))
        if self._end_by is not None:
            self._end()

    def process_exited(self) -> None:
        self._end_by = self._loop.call_later(0 if self._closed else _LAST_WORDS_S, self._end)

    def _end(self) -> None:
        if self.ended.done():
            return
        self.ended.set_result(None)
        if not self.ready.done():
            self.ready.set_result(None)
        if self._end_by is not None:
            self._end_by.cancel()
        if self._transport is not None:
            self._transport.close()

    def _take(self, raw: bytes) -> None:
        line = raw[:LINE_BYTES].decode(errors="replace").rstrip("\r")
        self.tail.append(line)
        if self._pattern and not self.ready.done() and (match := self._pattern.search(line)):
            self.ready.set_result(match)
        self._on_line(line)
