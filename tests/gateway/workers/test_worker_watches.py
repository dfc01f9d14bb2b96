"""What a worker of ours tells by its two watches, and again after an end."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from clocks import FakeClock
from radixgate.fleet.fleet import Fleet, LoadReport, MirrorKey, WorkerIdentity
from radixgate.gateway.observe.watch_counts import WatchCounts
from radixgate.gateway.upstream.grpc_endpoint import GrpcEndpoint
from radixgate.gateway.upstream.http2_silence import Pings
from radixgate.gateway.upstream.http2_stream import Http2Stream
from radixgate.gateway.workers.mirror_file import MirrorFile
from radixgate.gateway.workers.worker_watches import WorkerWatches
from radixgate.policies.registry import make_policy
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc
from radixgate.proto.kv_events import KvEvent
from radixgate.radix_mirror.mirror import RadixMirror
from until import until

Context = grpc.aio.ServicerContext[Any, Any]
WORKER = "w0"


class Telling(rpc.WorkerServicer):
    """Tells what it was given for each call; the last call goes on."""

    def __init__(self) -> None:
        self.asked_kv: list[tuple[int, int]] = []
        self.asked_load: list[str] = []
        self.kv: list[list[pb.KvUpdate]] = []
        self.loads: list[list[pb.LoadReport]] = []

    async def WatchKv(
        self, request: pb.WatchKvRequest, context: Context
    ) -> AsyncIterator[pb.KvUpdate]:
        self.asked_kv.append((request.epoch, request.seq))
        for update in self.kv.pop(0):
            yield update
        if not self.kv:
            await asyncio.Event().wait()

    async def WatchLoad(
        self, request: pb.WatchLoadRequest, context: Context
    ) -> AsyncIterator[pb.LoadReport]:
        self.asked_load.append(request.gateway_id)
        for report in self.loads.pop(0):
            yield report
        if not self.loads:
            await asyncio.Event().wait()
        await context.abort(grpc.StatusCode.INTERNAL, "a fault")


def snapshot(epoch: int, seq: int) -> pb.KvUpdate:
    part = pb.KvSnapshotPart(first=True, last=True)
    return pb.KvUpdate(epoch=epoch, seq=seq, snapshot=part)


def heartbeat(epoch: int, seq: int) -> pb.KvUpdate:
    return pb.KvUpdate(epoch=epoch, seq=seq, heartbeat=pb.KvHeartbeat())


@asynccontextmanager
async def watching(
    service: Telling, run: Callable[[WorkerWatches], Any], counts: WatchCounts | None = None
) -> AsyncIterator[Fleet]:
    """A fleet of one worker, and one of its watches."""
    server = grpc.aio.server()
    rpc.add_WorkerServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    clock, rng, pings = FakeClock(), random.Random(0), Pings()
    fleet = Fleet(make_policy("round_robin", clock, rng), clock, rng)
    fleet.admit(
        WorkerIdentity(
            id=WORKER,
            url=f"grpc://127.0.0.1:{port}",
            kind="grpc",
            model="toy",
            mirror=MirrorKey("toy", "tokens", 16),
            capacity_tokens=1_000,
            weights_id="w",
            instance_id="first",
            reports_kv=True,
        )
    )
    endpoint = GrpcEndpoint("127.0.0.1", port, f"127.0.0.1:{port}", None)

    def dial(method: str, on_message: Callable[[bytes], None]) -> Http2Stream:
        return Http2Stream(endpoint, f"/radixgate.v1.Worker/{method}", on_message, pings)

    counts = WatchCounts() if counts is None else counts
    watches = WorkerWatches(dial, WORKER, fleet, "gateway-1", MirrorFile(None), counts, clock)
    running = asyncio.create_task(run(watches))
    try:
        yield fleet
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.stop(None)


def reported(fleet: Fleet) -> int:
    """Requests that run, as last told; 0: nothing has been."""
    record = fleet.record(WORKER)
    assert record is not None
    return 0 if record.report is None else record.report.running


async def test_load_reports_are_entered_and_asked_for_again_when_the_call_fails() -> None:
    service = Telling()
    first = [pb.LoadReport(running=1), pb.LoadReport(running=2)]
    service.loads = [first, [pb.LoadReport(running=3)]]
    async with watching(service, WorkerWatches.load) as fleet:
        await until(lambda: reported(fleet) == 3)
    assert service.asked_load == ["gateway-1", "gateway-1"]


async def test_after_a_gap_in_the_news_it_is_asked_anew_from_where_they_were_whole() -> None:
    service, counts = Telling(), WatchCounts()
    # Nine updates have been, and two of them did not come.
    service.kv = [[snapshot(5, 7), heartbeat(5, 9), snapshot(5, 9)], [heartbeat(5, 7)]]
    async with watching(service, WorkerWatches.kv, counts) as fleet:
        await until(lambda: len(service.asked_kv) == 2)
        blocks = fleet.mirror_of(WORKER).blocks_of(WORKER)
    assert service.asked_kv == [(0, 0), (5, 7)]
    assert (blocks.epoch, blocks.complete) == (5, True)
    assert (counts.resyncs, counts.faults) == ({"gap": 1}, {})


@pytest.mark.slow
async def test_a_fault_of_ours_in_an_update_costs_a_snapshot_and_not_the_watch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service, counts = Telling(), WatchCounts()
    service.kv = [[snapshot(5, 7)], [snapshot(5, 8)], [snapshot(5, 9)]]
    apply, faults = RadixMirror.apply, [ValueError("a fault"), ValueError("a fault"), None]

    def faulty(mirror: RadixMirror, worker: str, epoch: int, events: Sequence[KvEvent]) -> None:
        if fault := faults.pop(0):
            raise fault
        apply(mirror, worker, epoch, events)

    monkeypatch.setattr(RadixMirror, "apply", faulty)
    async with watching(service, WorkerWatches.kv, counts) as fleet:
        mirror = fleet.mirror_of(WORKER)
        await until(lambda: mirror.blocks_of(WORKER).complete)
    assert service.asked_kv == [(0, 0)] * 3, "what was half taken is not gone on from"
    assert (counts.resyncs, counts.faults) == ({"fault": 2}, {"WatchKv": 2})
    said = [one for one in caplog.records if one.getMessage().startswith("a worker's news")]
    assert [one.exc_info is not None for one in said] == [True, False], "one traceback will do"


async def test_a_fault_of_ours_in_a_load_report_costs_that_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, counts = Telling(), WatchCounts()
    service.loads = [[pb.LoadReport(running=1)], [pb.LoadReport(running=3)]]
    report_load = Fleet.report_load

    def faulty(fleet: Fleet, worker_id: str, report: LoadReport) -> None:
        if report.running == 1:
            raise ValueError("a fault")
        report_load(fleet, worker_id, report)

    monkeypatch.setattr(Fleet, "report_load", faulty)
    async with watching(service, WorkerWatches.load, counts) as fleet:
        await until(lambda: reported(fleet) == 3)
    assert (counts.resyncs, counts.faults) == ({}, {"WatchLoad": 1})


@pytest.mark.slow
async def test_a_worker_whose_news_never_fit_is_asked_ever_more_rarely() -> None:
    service = Telling()
    service.kv = [[heartbeat(5, 9)], [heartbeat(5, 9)], [heartbeat(5, 9)], []]
    began = asyncio.get_running_loop().time()
    async with watching(service, WorkerWatches.kv):
        await until(lambda: len(service.asked_kv) == 4)
    assert asyncio.get_running_loop().time() - began >= 0.1 + 0.2 + 0.4
