"""A client of several processes: sessions are dealt out, each process plays its own on one loop."""

import asyncio
import multiprocessing
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import msgspec
import uvloop

from radixgate.analysis.records import RequestRecord
from radixgate.analysis.validity import ClientHealth
from radixgate.clock import Clock, SystemClock
from radixgate.errors import ProcessFailed
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.loop_watch import watched
from radixgate.loadgen.progress import Progress, RequestEnd
from radixgate.loadgen.quiet_collector import quiet_collector
from radixgate.loadgen.schedule import Schedule, as_lines, from_lines
from radixgate.loadgen.server import client_of, server_of
from radixgate.open_files import raise_limit

_START_TIMEOUT_S = 60.0
# From the order to start to the first intended time, so that every process has read it.
_LEAD_S = 0.25
# What ended is told to the parent this often. The parent reads at once, so the pipe holds a batch;
# a parent that stalls stalls the child's loop, which the loop's lag then tells.
_TELL_EVERY_S = 0.25
_RECORDS_A_MESSAGE = 64


@dataclass(frozen=True, slots=True)
class ShardedRun:
    """What all processes measured, as one."""

    start_s: float  # the clock's time that the records count from
    records: Sequence[RequestRecord]  # in the order of the schedule
    clients: Sequence[ClientHealth]


@dataclass(frozen=True, slots=True)
class _Shard:
    number: int
    config: BenchConfig  # with this process's share of the places
    model: str
    lines: bytes


class _Finished(msgspec.Struct, tag=True):
    health: ClientHealth


class _Records(msgspec.Struct, tag=True):
    records: list[RequestRecord]


class _EndedLately(msgspec.Struct, tag=True):
    ended: list[RequestEnd]


_Said = _Finished | _Records | _EndedLately


async def play_in_processes(
    config: BenchConfig, model: str, schedule: Schedule, clock: Clock, progress: Progress
) -> ShardedRun:
    """Play `schedule` with `config.processes` processes that start together.

    Needs a clock that all processes of the machine share, as the monotonic one is.
    Raises ProcessFailed if one of them ends before it has played its share.
    """
    context = multiprocessing.get_context("spawn")
    children: list[BaseProcess] = []
    pipes: list[Connection] = []
    try:
        for shard in _shards(config, model, schedule):
            ours, theirs = context.Pipe()
            child: BaseProcess = context.Process(
                target=_play_shard, args=(shard, theirs), daemon=True
            )
            await asyncio.to_thread(child.start)
            theirs.close()
            children.append(child)
            pipes.append(ours)
        await asyncio.gather(*(_ready(number, pipe) for number, pipe in enumerate(pipes)))
        start_s = clock.now() + _LEAD_S
        for pipe in pipes:
            pipe.send(start_s)
        parts = await asyncio.gather(
            *(_collect(number, pipe, progress) for number, pipe in enumerate(pipes))
        )
    finally:
        for pipe in pipes:
            pipe.close()
        for child in children:
            child.terminate()
            await asyncio.to_thread(child.join)
    records = sorted((r for part, _ in parts for r in part), key=lambda record: record.index)
    return ShardedRun(start_s, records, [health for _, health in parts])


def _shards(config: BenchConfig, model: str, schedule: Schedule) -> list[_Shard]:
    """Sessions by turns, in the order of their first requests; places as even as they go."""
    count = config.processes
    homes: dict[str, int] = {}
    parts: list[list[bytes]] = [[] for _ in range(count)]
    for request in schedule:
        home = homes.setdefault(request.session, len(homes) % count)
        parts[home].append(as_lines([request]))
    places = config.max_concurrency
    return [
        _Shard(
            number,
            config
            if places is None
            else replace(
                config,
                processes=1,
                max_concurrency=places // count + (number < places % count),
            ),
            model,
            b"".join(part),
        )
        for number, part in enumerate(parts)
    ]


async def _ready(number: int, pipe: Connection) -> None:
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            await _readable(pipe)
        pipe.recv_bytes()
    except (EOFError, OSError) as error:
        raise ProcessFailed(f"client process {number} did not start: {error!r}") from error


async def _collect(
    number: int, pipe: Connection, progress: Progress
) -> tuple[list[RequestRecord], ClientHealth]:
    decode = msgspec.msgpack.Decoder(_Said).decode
    records: list[RequestRecord] = []
    while True:
        await _readable(pipe)
        try:
            said = decode(pipe.recv_bytes())
        except (EOFError, OSError) as error:
            raise ProcessFailed(
                f"client process {number} ended after {len(records)} of its records"
            ) from error
        if isinstance(said, _Finished):
            return records, said.health
        if isinstance(said, _Records):
            records += said.records
            continue
        for ended in said.ended:
            progress.note(ended)


async def _readable(pipe: Connection) -> None:
    loop = asyncio.get_running_loop()
    there: asyncio.Future[None] = loop.create_future()

    def note() -> None:
        if not there.done():
            there.set_result(None)

    loop.add_reader(pipe.fileno(), note)
    try:
        await there
    finally:
        loop.remove_reader(pipe.fileno())


# ---------------------------------------------------------------- in the child


def _play_shard(shard: _Shard, pipe: Connection) -> None:
    # After Ctrl-C, or when the parent is gone, nobody is left to read a result or an error.
    with suppress(KeyboardInterrupt, EOFError, BrokenPipeError):
        raise_limit()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
            loop.run(_play(shard, pipe))


async def _play(shard: _Shard, pipe: Connection) -> None:
    clock = SystemClock()
    schedule = from_lines(shard.lines)
    async with client_of(shard.config, clock) as client:
        server = server_of(shard.config, client, shard.model, clock)
        sender = _Sender(pipe, clock)
        with quiet_collector():
            pipe.send_bytes(b"ready")
            start_s: float = await asyncio.to_thread(pipe.recv)
            async with watched(clock) as watch:
                records = await server.play(schedule, sender, start_s)
        sender.close()
        encode = msgspec.msgpack.encode
        for place in range(0, len(records), _RECORDS_A_MESSAGE):
            pipe.send_bytes(encode(_Records(records[place : place + _RECORDS_A_MESSAGE])))
        pipe.send_bytes(encode(_Finished(watch.health(shard.number, len(records)))))


class _Sender:
    """A Progress that tells another process."""

    def __init__(self, pipe: Connection, clock: Clock) -> None:
        self._pipe = pipe
        self._clock = clock
        self._ended: list[RequestEnd] = []  # since the last time, so at most a quarter second's
        self._told_s = clock.now()

    def note(self, ended: RequestEnd) -> None:
        self._ended.append(ended)
        if self._clock.now() - self._told_s >= _TELL_EVERY_S:
            self.close()

    def close(self) -> None:
        self._pipe.send_bytes(msgspec.msgpack.encode(_EndedLately(self._ended)))
        self._ended = []
        self._told_s = self._clock.now()
