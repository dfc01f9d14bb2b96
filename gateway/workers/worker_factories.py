"""The kinds of workers there are, by the scheme of their URL."""

import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from radixgate.clock import Clock
from radixgate.errors import RequestError
from radixgate.fleet.fleet import Fleet
from radixgate.gateway.asking.prompt_tokens import PromptTokenizer
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.observe.watch_counts import WatchCounts
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.upstream.pool import UpstreamPool
from radixgate.gateway.workers.grpc_worker_parts import GrpcWorkerParts
from radixgate.gateway.workers.late_grpc_worker import LateGrpcWorker
from radixgate.gateway.workers.mirror_file import MirrorFile
from radixgate.gateway.workers.own_names import OwnNames
from radixgate.gateway.workers.worker_address import WorkerAddress
from radixgate.gateway.workers.worker_foreign import ForeignWorker
from radixgate.gateway.workers.worker_handle import WorkerFactory, WorkerHandle
from radixgate.gateway.workers.worker_http import HttpWorkerClient


def worker_factories(
    config: GatewayConfig,
    fleet: Fleet,
    prompts: PromptTokenizer,
    deadlines: Deadlines,
    turn: LoopTurn,
    clock: Clock,
    rng: random.Random,
    names: OwnNames,
    rules: GatewayRules,
    mirror_file: MirrorFile,
    watch_counts: WatchCounts,
    check_timeout: Callable[[], float],
) -> Mapping[str, WorkerFactory]:
    """What makes a handle for `grpc://` (ours) and for `http://` (any other), in the clear or not.
    `check_timeout`: seconds for a check and for an order, asked for each time.

    Raises ConfigError if the certificates for workers cannot be used.
    """
    worker_api_key, answer_headers = rules.access.worker_api_key, rules.headers.to_client()
    context = rules.tls.for_workers()

    def http_pool(
        host: str, port: int, tls: ssl.SSLContext | None, credentials: bytes = b""
    ) -> UpstreamPool:
        return UpstreamPool(
            host,
            port,
            clock=clock,
            deadlines=deadlines,
            turn=turn,
            max_idle=config.worker_idle_connections,
            idle_timeout_s=config.worker_idle_timeout_secs,
            credentials=credentials,
            tls=tls,
        )

    parts = GrpcWorkerParts(
        gateway_id=names.gateway_id,
        fleet=fleet,
        prompts=prompts,
        http_pool=lambda host, port: http_pool(host, port, None),
        check_timeout=check_timeout,
        clock=clock,
        wall_clock=time.time,
        rng=rng,
        new_rid=names.new_rid,
        mirror_file=mirror_file,
        watch_counts=watch_counts,
    )
    tls_parts = replace(
        parts,
        http_pool=lambda host, port: http_pool(host, port, context),
        certificates=rules.tls.for_grpc_workers(),
    )

    def own(address: WorkerAddress, api_key: str | None) -> WorkerHandle:
        if api_key is not None:
            raise RequestError(f"a {address.scheme}:// worker takes no api_key", param="api_key")
        return LateGrpcWorker(address, tls_parts if address.scheme == "grpcs" else parts)

    def foreign(address: WorkerAddress, api_key: str | None) -> WorkerHandle:
        key = api_key or worker_api_key
        credentials = b"authorization: Bearer %b\r\n" % key.encode("ascii") if key else b""
        tls = context if address.scheme == "https" else None
        pool = http_pool(address.host, address.port, tls, credentials)
        client = HttpWorkerClient(pool, config.worker_connect_timeout_secs, answer_headers)
        questions = http_pool(address.host, address.port, tls, credentials)
        return ForeignWorker(address, client, questions, check_timeout, names.gateway_id)

    return {"grpc": own, "grpcs": own, "http": foreign, "https": foreign}
