"""A fleet for one demonstration: fresh workers, a gateway, and nothing left of them afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from radixgate.household import Household
from radixgate.loadgen.demo_config import DemoConfig
from radixgate.up_config import UpConfig

_GRACE_S = 1.0


@asynccontextmanager
async def fresh_fleet(config: DemoConfig, policy: str) -> AsyncIterator[str]:
    """The URL of a gateway with `policy` over new workers, all of them ready to be asked.

    All listen on 127.0.0.1, on ports the system picks. Raises ProcessFailed with the last lines
    of a process that does not get ready in time.
    """
    household = Household(
        UpConfig(
            model_path=config.model_path,
            workers=config.workers,
            port=0,
            policy=policy,
            page_size=config.page_size,
            max_total_tokens=config.pool_tokens,
            threads=config.threads,
            start_timeout_s=config.start_timeout_s,
            drain_s=_GRACE_S,
        )
    )
    try:
        await household.start()
        yield household.url
    finally:
        await household.stop()
