"""Waking whoever waits for the next change, however many they are."""

import asyncio


class Changes:
    """Each waiter holds the event of the change to come; nothing is kept for those who left."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def next(self) -> asyncio.Event:
        """Set at the next `notify`; ask for it before reading the state that may change."""
        return self._next

    def notify(self) -> None:
        """Loop thread only."""
        done, self._next = self._next, asyncio.Event()
        done.set()


async def wait_for_change(changed: asyncio.Event, seconds: float) -> None:
    """Until the event is set or the time has passed, whichever comes first."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await changed.wait()
    except TimeoutError:
        return
