"""Waiting for what another task or process brings about."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], within_s: float = 2.0) -> None:
    """Looks every millisecond. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  # what is awaited sets no event
            await asyncio.sleep(0.001)
