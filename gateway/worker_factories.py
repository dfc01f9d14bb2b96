"""The kinds of workers there are, by the scheme of their URL."""

import random
import time
from collections.abc import Mapping

from radixgate.clock import Clock
from radixgate.fleet.fleet import Fleet
from radixgate.gateway.config import GatewayConfig
from radixgate.gateway.deadlines import Deadlines
from radixgate.gateway.grpc_worker import GrpcWorker, GrpcWorkerParts
from radixgate.gateway.prompt_tokens import PromptTokenizer
from radixgate.gateway.upstream_http import UpstreamPool
from radixgate.gateway.worker_address import WorkerAddress
from radixgate.gateway.worker_foreign import ForeignWorker
from radixgate.gateway.worker_handle import WorkerFactory, WorkerHandle
from radixgate.gateway.worker_http import HttpWorkerClient


def worker_factories(
    config: GatewayConfig,
    fleet: Fleet,
    prompts: PromptTokenizer,
    deadlines: Deadlines,
    clock: Clock,
    rng: random.Random,
) -> Mapping[str, WorkerFactory]:
    """What makes a handle for `grpc://` (ours) and for `http://` (any other)."""
    timeout_s = config.health_check_timeout_secs

    def http_pool(host: str, port: int) -> UpstreamPool:
        return UpstreamPool(
            host,
            port,
            clock=clock,
            deadlines=deadlines,
            max_idle=config.worker_idle_connections,
            idle_timeout_s=config.worker_idle_timeout_secs,
        )

    parts = GrpcWorkerParts(
        gateway_id=f"gateway-{rng.getrandbits(64):016x}",
        fleet=fleet,
        prompts=prompts,
        http_pool=http_pool,
        timeout_s=timeout_s,
        clock=clock,
        wall_clock=time.time,
        rng=rng,
    )

    def own(address: WorkerAddress) -> WorkerHandle:
        return GrpcWorker(address, parts)

    def foreign(address: WorkerAddress) -> WorkerHandle:
        pool = http_pool(address.host, address.port)
        client = HttpWorkerClient(pool, config.worker_connect_timeout_secs)
        return ForeignWorker(address, client, http_pool(address.host, address.port), timeout_s)

    return {"grpc": own, "http": foreign}
