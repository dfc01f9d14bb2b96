"""One measurement of one server: warm up, flush if asked, play the schedule, sum up."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from radixgate.analysis.balance import FleetPoll
from radixgate.analysis.records import RequestRecord
from radixgate.analysis.summary import Summary, summarise
from radixgate.analysis.validity import ClientHealth
from radixgate.clock import Clock
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.fleet_watch import fleet_polls
from radixgate.loadgen.loop_watch import watched
from radixgate.loadgen.progress import NoProgress, Progress
from radixgate.loadgen.quiet_collector import quiet_collector
from radixgate.loadgen.schedule import Schedule, hash_of
from radixgate.loadgen.server import client_of, model_of, server_of
from radixgate.loadgen.shards import play_in_processes

# Time for a task for each session before the first request is due. It counts from after the
# collection of garbage, which takes as long as the process has objects.
_LEAD_S = 0.05


@dataclass(frozen=True, slots=True)
class BenchRun:
    """A finished measurement."""

    schedule_hash: str
    records: Sequence[RequestRecord]
    summary: Summary
    clients: Sequence[ClientHealth] = ()
    polls: Sequence[FleetPoll] = ()  # of a gateway's workers; empty: not asked, or no gateway


async def measure(
    config: BenchConfig,
    schedule: Schedule,
    clock: Clock,
    progress: Callable[[int], Progress] = lambda total: NoProgress(),
) -> BenchRun:
    """Measure the configured server with `schedule`; `progress` is made for its length.

    Raises ConfigError if the server is not there, answers no warm-up request, or cannot take a
    prompt of the schedule; ProcessFailed if a process of the client ends early.
    """
    async with client_of(config, clock) as client:
        model = await model_of(config, client)
        server = server_of(config, client, model, clock)
        server.check(schedule)
        await server.warm_up()
        if config.flush_cache:
            await server.flush()
        await asyncio.sleep(config.settle_s)
        shown = progress(len(schedule))
        try:
            async with fleet_polls(client, clock, _poll_every_s(config)) as polls:
                if config.processes > 1:
                    run = await play_in_processes(config, model, schedule, clock, shown)
                    start_s, records, clients = run.start_s, run.records, run.clients
                else:
                    with quiet_collector():
                        async with watched(clock) as watch:
                            start_s = clock.now() + _LEAD_S
                            records = await server.play(schedule, shown, start_s)
                    clients = [watch.health(0, len(records))]
        finally:
            shown.close()
    since = [replace(poll, at_s=poll.at_s - start_s) for poll in polls]
    return BenchRun(hash_of(schedule), records, summarise(records), clients, since)


def _poll_every_s(config: BenchConfig) -> float:
    """Only a run that is kept asks the gateway about its workers."""
    return config.fleet_poll_s if config.output_folder is not None else 0.0
