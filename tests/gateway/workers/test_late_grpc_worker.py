"""A worker of ours can be there, be given orders, and be dropped before it is asked who it is."""

import random

import pytest

from clocks import FakeClock
from radixgate.errors import WorkerFailed, WorkerUnreachable
from radixgate.fleet.fleet import Fleet
from radixgate.gateway.asking.prompt_tokens import PromptTokenizer
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.observe.watch_counts import WatchCounts
from radixgate.gateway.processes.reserved_port import reserve
from radixgate.gateway.upstream.pool import UpstreamPool
from radixgate.gateway.workers.grpc_client import GrpcWorkerClient
from radixgate.gateway.workers.grpc_worker_parts import GrpcWorkerParts
from radixgate.gateway.workers.late_grpc_worker import LateGrpcWorker
from radixgate.gateway.workers.mirror_file import MirrorFile
from radixgate.gateway.workers.worker_address import WorkerAddress
from radixgate.policies.registry import make_policy


def no_pool(host: str, port: int) -> UpstreamPool:
    raise AssertionError("it is not asked by HTTP")


def late(port: int) -> LateGrpcWorker:
    clock, rng = FakeClock(), random.Random(0)
    parts = GrpcWorkerParts(
        gateway_id="gateway-1",
        fleet=Fleet(make_policy("round_robin", clock, rng), clock, rng),
        prompts=PromptTokenizer(),
        http_pool=no_pool,
        check_timeout=lambda: 1.0,
        clock=clock,
        wall_clock=clock.now,
        rng=rng,
        new_rid=lambda: "rid-1",
        mirror_file=MirrorFile(None),
        watch_counts=WatchCounts(),
    )
    return LateGrpcWorker(WorkerAddress("grpc", "127.0.0.1", port), parts)


async def test_before_its_first_probe_it_has_done_nothing_and_takes_no_order() -> None:
    worker = late(9001)
    everything = AbortOrder(None)
    assert not worker.heard()
    assert not worker.runs(everything)
    said = "worker 127.0.0.1:9001 has not been asked who it is yet"
    for result in (
        await worker.flush_cache(),
        await worker.abort_request(everything),
        await worker.info("/get_server_info"),
    ):
        assert (result.ok, result.message) == (False, said)
    with pytest.raises(WorkerFailed, match=said):
        await worker.ask("POST", "/tokenize", b"")
    worker.close()


async def test_from_its_first_probe_on_it_speaks_grpc() -> None:
    with reserve("127.0.0.1", 0) as silent:
        port = silent.getsockname()[1]
        worker = late(port)
        with pytest.raises(WorkerUnreachable, match=f"worker 127.0.0.1:{port}"):
            await worker.probe()
    assert isinstance(worker.client, GrpcWorkerClient)
    assert (await worker.abort_request(AbortOrder(None))).answer == {"aborted": 0}
    assert not worker.heard()
    worker.close()
