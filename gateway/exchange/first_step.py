"""A coroutine that takes its first step where it is made: most have ended with it."""

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine

Steps = Coroutine[object, object, None]


def begun(steps: Steps) -> "asyncio.Task[None] | None":
    """A task for what is left of it; None: nothing is. Raises what its first step does.

    A task alone begins in the loop's next turn. The first step is in no task: it may ask for
    neither the current one nor a timeout.
    """
    try:
        waits_for = steps.send(None)
    except StopIteration:
        return None
    rest = _left_of(steps, waits_for)
    rest.send(None)  # a task that is cancelled before its first step would not enter it
    return asyncio.get_running_loop().create_task(rest)


async def _left_of(steps: Steps, waits_for: object) -> None:
    await _handed_on(steps, waits_for)


@coroutine
def _handed_on(steps: Steps, waits_for: object) -> Generator[object, object, None]:
    """The task waits for what the steps wait for, as if it had met it itself. (A coroutine that
    has begun cannot be awaited.)"""
    try:
        try:
            yield None
        except asyncio.CancelledError as error:
            # As a task does it: what is waited for ends first, if it has not.
            if not (isinstance(waits_for, asyncio.Future) and waits_for.cancel()):
                waits_for = steps.throw(error)
        while True:
            try:
                came = yield waits_for
            except BaseException as error:
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(came)
    except StopIteration:
        return
