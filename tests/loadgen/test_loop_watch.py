"""A loop that is held up is noticed, and so is a process that does nothing else."""

import asyncio
import time

import pytest

from clocks import FakeClock
from radixgate.clock import SystemClock
from radixgate.loadgen.loop_watch import watched


@pytest.mark.slow
async def test_a_loop_that_is_held_up_is_noticed() -> None:
    async with watched(SystemClock()) as watch:
        for _ in range(5):
            await asyncio.sleep(0.03)
            time.sleep(0.05)  # noqa: ASYNC251 - holding the loop up is what is tested
    health = watch.health(3, 7)
    assert (health.process, health.requests) == (3, 7)
    assert health.loop_lag_max_s >= 0.02
    assert health.loop_lag_p99_s >= 0.02


@pytest.mark.slow
async def test_work_takes_a_share_of_a_core_and_sleep_takes_none() -> None:
    """Of a second by the clock in both, however long the machine takes for it."""
    clock = FakeClock()
    async with watched(clock) as busy:
        end_s = time.process_time() + 0.1
        while time.process_time() < end_s:
            pass
        clock.advance(1.0)
    async with watched(clock) as idle:
        await asyncio.sleep(0.2)
        clock.advance(1.0)
    assert busy.cpu_share >= 0.1
    assert busy.cpu_share > 2 * idle.cpu_share
    assert idle.health(0, 0).cpu_share < 0.05


async def test_nothing_watched_is_no_lag() -> None:
    async with watched(SystemClock()) as watch:
        pass
    assert watch.health(0, 0).loop_lag_p99_s == 0.0
