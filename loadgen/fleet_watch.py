"""The load of each worker over a run, as the gateway's `GET /workers` tells it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import msgspec

from radixgate.analysis.balance import FleetPoll
from radixgate.clock import Clock
from radixgate.loadgen.client import StreamClient

_TIMEOUT_S = 2.0
# A server that has not answered so often is no gateway, or has other things to do.
_PATIENCE = 3


class _Load(msgspec.Struct):
    kv_tokens_used: int | None = None


class _Worker(msgspec.Struct):
    id: str
    in_flight: int = 0
    tokens_in_flight: int = 0
    load: _Load | None = None


class _Workers(msgspec.Struct):
    workers: list[_Worker]


@asynccontextmanager
async def fleet_polls(
    client: StreamClient, clock: Clock, every_s: float
) -> AsyncIterator[list[FleetPoll]]:
    """A list that grows by a poll each `every_s` (0: never); times are the clock's.

    A server without `/workers` leaves it empty: it is asked three times.
    """
    polls: list[FleetPoll] = []
    task = asyncio.create_task(_poll(client, clock, every_s, polls)) if every_s > 0 else None
    try:
        yield polls
    finally:
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _poll(client: StreamClient, clock: Clock, every_s: float, polls: list[FleetPoll]) -> None:
    missed = 0
    while polls or missed < _PATIENCE:
        at_s = clock.now()
        try:
            told = msgspec.convert(await client.get_json("/workers", _TIMEOUT_S), _Workers)
        except (aiohttp.ClientError, OSError, ValueError):
            missed += 1
        else:
            polls.append(_row(at_s, told))
        await asyncio.sleep(max(0.0, at_s + every_s - clock.now()))


def _row(at_s: float, told: _Workers) -> FleetPoll:
    return FleetPoll(
        at_s=at_s,
        in_flight={worker.id: worker.in_flight for worker in told.workers},
        tokens_in_flight={worker.id: worker.tokens_in_flight for worker in told.workers},
        kv_tokens_used={
            worker.id: None if worker.load is None else worker.load.kv_tokens_used
            for worker in told.workers
        },
    )
