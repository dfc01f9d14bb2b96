"""A worker of ours as the gateway probes it."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as grpc_health

from clocks import FakeClock
from radixgate.fleet.fleet import Fleet
from radixgate.gateway.asking.prompt_tokens import PromptTokenizer, ServedModel
from radixgate.gateway.observe.watch_counts import WatchCounts
from radixgate.gateway.upstream.pool import UpstreamPool
from radixgate.gateway.workers.grpc_worker import GrpcWorker
from radixgate.gateway.workers.grpc_worker_parts import GrpcWorkerParts
from radixgate.gateway.workers.mirror_file import MirrorFile
from radixgate.gateway.workers.worker_address import WorkerAddress
from radixgate.policies.registry import make_policy
from radixgate.proto.contract import CONTRACT_VERSION
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.weights.toy import toy_tokenizer_bundle


class Answering(rpc.WorkerServicer):
    """Says who it is."""

    def __init__(self) -> None:
        self.instance_id = "first"

    async def GetInfo(
        self, request: pb.GetInfoRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> pb.WorkerInfo:
        return pb.WorkerInfo(
            instance_id=self.instance_id, model="toy", weights_id="w", contract=CONTRACT_VERSION
        )


@asynccontextmanager
async def listening(service: Answering) -> AsyncIterator[int]:
    """Its port."""
    server = grpc.aio.server()
    rpc.add_WorkerServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    health = grpc_health.HealthServicer()
    await health.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield port
    await server.stop(None)


def no_pool(host: str, port: int) -> UpstreamPool:
    raise AssertionError("it is not asked by HTTP")


def worker_at(port: int) -> GrpcWorker:
    clock, rng, prompts = FakeClock(), random.Random(0), PromptTokenizer()
    prompts.learn(ServedModel("toy", "w", "t", 512, 4_096, PromptEncoder(toy_tokenizer_bundle())))
    parts = GrpcWorkerParts(
        gateway_id="gateway-1",
        fleet=Fleet(make_policy("round_robin", clock, rng), clock, rng),
        prompts=prompts,
        http_pool=no_pool,
        check_timeout=lambda: 5.0,
        clock=clock,
        wall_clock=clock.now,
        rng=rng,
        new_rid=lambda: "rid-1",
        mirror_file=MirrorFile(None),
        watch_counts=WatchCounts(),
    )
    return GrpcWorker(WorkerAddress("grpc", "127.0.0.1", port), parts)


async def test_pings_that_were_too_many_for_one_process_are_not_for_the_next() -> None:
    service = Answering()
    async with listening(service) as port:
        worker = worker_at(port)
        await worker.probe()
        worker._pings.be_rarer()
        await worker.probe()
        assert worker._pings.after_s == 20.0
        service.instance_id = "second"
        await worker.probe()
        assert worker._pings.after_s == 10.0
        worker.close()
        assert worker._closing is not None
        await worker._closing
