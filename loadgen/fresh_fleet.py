"""A fleet for one measurement: fresh workers, a gateway, and nothing left of them afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from radixgate.household import Household
from radixgate.up_config import UpConfig

_GRACE_S = 1.0


@asynccontextmanager
async def fresh_fleet(config: UpConfig) -> AsyncIterator[str]:
    """The URL of a gateway over new workers; else as `fresh_household`."""
    async with fresh_household(config) as household:
        yield household.url


@asynccontextmanager
async def fresh_household(config: UpConfig) -> AsyncIterator[Household]:
    """A gateway over new workers, all of them ready to be asked.

    All listen on 127.0.0.1, on ports the system picks whatever `config` says. Raises ProcessFailed
    with the last lines of a process that does not get ready in time.
    """
    household = Household(replace(config, port=0, drain_s=_GRACE_S))
    try:
        await household.start()
        yield household
    finally:
        await household.stop()
