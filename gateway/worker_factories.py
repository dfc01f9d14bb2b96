"""The kinds of workers there are, by the scheme of their URL."""

import random
import time
from collections.abc import Mapping

from radixgate.clock import Clock
from radixgate.errors import RequestError
from radixgate.fleet.fleet import Fleet
from radixgate.gateway.config import GatewayConfig
from radixgate.gateway.deadlines import Deadlines
from radixgate.gateway.grpc_worker import GrpcWorker, GrpcWorkerParts
from radixgate.gateway.header_rules import Crosses
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
    worker_api_key: str | None,
    answer_headers: Crosses,
) -> Mapping[str, WorkerFactory]:
    """What makes a handle for `grpc://` (ours) and for `http://` (any other).

    `worker_api_key` is for those of the latter that are added without a key of their own.
    `answer_headers`: which of the latter's headers clients get.
    """
    timeout_s = config.health_check_timeout_secs

    def http_pool(host: str, port: int, credentials: bytes = b"") -> UpstreamPool:
        return UpstreamPool(
            host,
            port,
            clock=clock,
            deadlines=deadlines,
            max_idle=config.worker_idle_connections,
            idle_timeout_s=config.worker_idle_timeout_secs,
            credentials=credentials,
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

    def own(address: WorkerAddress, api_key: str | None) -> WorkerHandle:
        if api_key is not None:
            raise RequestError("a grpc:// worker takes no api_key", param="api_key")
        return GrpcWorker(address, parts)

    def foreign(address: WorkerAddress, api_key: str | None) -> WorkerHandle:
        key = api_key or worker_api_key
        credentials = b"authorization: Bearer %b\r\n" % key.encode("ascii") if key else b""
        pool = http_pool(address.host, address.port, credentials)
        client = HttpWorkerClient(pool, config.worker_connect_timeout_secs, answer_headers)
        questions = http_pool(address.host, address.port, credentials)
        return ForeignWorker(address, client, questions, timeout_s)

    return {"grpc": own, "http": foreign}
