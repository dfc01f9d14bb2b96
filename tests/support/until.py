"""Waiting for what another task or process brings about."""

import asyncio
from collections.abc import Callable

# Keeps a test from hanging. What is waited for comes at once, or as late as a slow and busy machine
# makes it: no test waits so long for something that is not to come.
PATIENCE_S = 30.0
_MOST_S = 0.05


async def until(condition: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    """Looks every millisecond, and more rarely the longer it has waited, by a twentieth of that: in
    virtual time, where each look costs milliseconds of real time, what never comes is soon known.
    Raises TimeoutError."""
    waited_s = 0.0
    async with asyncio.timeout(within_s):
        while not condition():
            pause_s = min(max(0.001, waited_s / 20), _MOST_S)
            await asyncio.sleep(pause_s)
            waited_s += pause_s
