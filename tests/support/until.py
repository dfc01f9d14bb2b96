"""Waiting for what another task or process brings about."""

import asyncio
from collections.abc import Callable

# Keeps a test from hanging. What is waited for comes at once, or as late as a slow and busy machine
# makes it: no test waits so long for something that is not to come.
PATIENCE_S = 30.0


async def until(condition: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    """Looks every millisecond. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  # what is awaited sets no event
            await asyncio.sleep(0.001)
