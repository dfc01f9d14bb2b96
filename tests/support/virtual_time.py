"""Coroutines in virtual time: sleeps pass at once, in order, and take exactly as long as asked."""

import asyncio
import functools
import selectors
import socket
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")
# How long bytes may be on their way from one socket of this process to another: a machine brings
# them at once, unless it is too busy with its networks.
_ON_THEIR_WAY_S = 0.004


class _Jumping(selectors.SelectSelector):
    """Instead of waiting for the next timer it moves the clock there, once no socket has news."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout != 0 and len(self.get_map()) > 1:  # one is the loop's own
            ready = super().select(_ON_THEIR_WAY_S)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("everything waits for something that no timer will bring")
        self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    async def getaddrinfo(self, *given: Any, **more: Any) -> Any:  # noqa: ANN401
        """Without a thread, which would be waited for in real time."""
        return socket.getaddrinfo(*given, **more)


class LoopClock:
    """The running loop's time as a Clock."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()


def run_virtually(main: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end on a loop of its own that starts at 0."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def in_virtual_time(
    test: Callable[Given, Coroutine[Any, Any, None]],
) -> Callable[Given, None]:
    """A test whose timers ring in their order, however slow the machine. Sockets, if it has any,
    connect it with itself only, and it waits for no thread."""

    @functools.wraps(test)
    def run(*given: Given.args, **more: Given.kwargs) -> None:
        run_virtually(test(*given, **more))

    return run
