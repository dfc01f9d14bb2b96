"""How a client's process fares: how late its loop comes to a timer, how much of a core it takes."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from radixgate.analysis.percentiles import percentile
from radixgate.analysis.validity import ClientHealth
from radixgate.clock import Clock

_EVERY_S = 0.010
# Half an hour of lags; of a longer run the last half hour is judged.
_MOST = 180_000


@dataclass(slots=True)
class LoopWatch:
    """Lags of one loop, and the CPU time of its process, between start and end."""

    clock: Clock
    lags_s: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST))
    cpu_share: float = 0.0

    def health(self, process: int, requests: int) -> ClientHealth:
        """What a verdict needs of it."""
        lags = sorted(self.lags_s) or [0.0]
        return ClientHealth(
            process=process,
            requests=requests,
            cpu_share=self.cpu_share,
            loop_lag_p99_s=percentile(lags, 99),
            loop_lag_max_s=lags[-1],
        )


@asynccontextmanager
async def watched(clock: Clock) -> AsyncIterator[LoopWatch]:
    """Watch the running loop meanwhile."""
    watch = LoopWatch(clock)
    start_s, cpu_s = clock.now(), time.process_time()
    task = asyncio.create_task(_sample(watch))
    try:
        yield watch
    finally:
        task.cancel()
        wall_s = clock.now() - start_s
        watch.cpu_share = (time.process_time() - cpu_s) / wall_s if wall_s > 0 else 0.0


async def _sample(watch: LoopWatch) -> None:
    now = watch.clock.now
    while True:
        before_s = now()
        await asyncio.sleep(_EVERY_S)
        watch.lags_s.append(max(0.0, now() - before_s - _EVERY_S))
