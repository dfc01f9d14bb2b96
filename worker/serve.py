"""A worker process from start to end: model, engine, the two servers, and the drain."""

import asyncio
import logging
import secrets
import signal
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import grpc
import uvloop
from aiohttp import web
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as grpc_health

from radixgate import __version__
from radixgate.clock import SystemClock
from radixgate.errors import ConfigError
from radixgate.every_address import on_every_address
from radixgate.log import fields
from radixgate.open_files import raise_limit
from radixgate.proto.contract import CONTRACT_VERSION
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc
from radixgate.proto.http_banner import Runner, without_versions
from radixgate.proto.http_errors import errors_as_json
from radixgate.proto.http_log import http_log
from radixgate.ready_lines import host_port, worker_ready
from radixgate.spare_collector import spare_collector
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.engine.engine import Engine
from radixgate.worker.engine.open_engine import open_engine
from radixgate.worker.serving.admin_routes import AdminRoutes
from radixgate.worker.serving.arriving import ArrivingRequests
from radixgate.worker.serving.changes import wait_for_change
from radixgate.worker.serving.grpc_server import WorkerService
from radixgate.worker.serving.http_server import GenerationRoutes
from radixgate.worker.serving.kv_broadcast import KvBroadcast
from radixgate.worker.serving.load_broadcast import LoadBroadcast
from radixgate.worker.serving.metrics import WorkerMetrics
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.settings.server_config import GrpcCertificates, ServerConfig
from radixgate.worker.weights.model_store import StoredModel, open_model

ENGINE_LOOK_S = 0.5
EXIT_ENGINE_FAILED = 1
# A Submit grows with its prompt: 4 bytes a token.
_MAX_MESSAGE_BYTES = 64 * 1024 * 1024
# No step begins during a collection: of so many objects, and ten times as many, it is short.
_COLLECT_AFTER_OBJECTS = 2_000
_log = logging.getLogger(__name__)


def run_worker(config: EngineConfig, server: ServerConfig) -> int:
    """Serve until SIGTERM or SIGINT, drain, and return the exit code."""
    logging.getLogger("radixgate").setLevel(server.log_level.upper())
    raise_limit()
    model = open_model(config.model_path, Path(server.cache_dir).expanduser())
    return uvloop.run(_Worker(config, server, model).run())


class _Worker:
    """Owns the parts of one process; `run` is its whole life."""

    def __init__(self, config: EngineConfig, server: ServerConfig, model: StoredModel) -> None:
        self._config = config
        self._server = server
        self._model = model
        self._clock = SystemClock()
        self._draining = False

    async def run(self) -> int:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

        cache_dir = Path(self._server.cache_dir)
        engine = open_engine(self._config, self._model, self._clock, cache_dir=cache_dir)
        info = self._info(engine)
        metrics = WorkerMetrics(engine.stats, info.model, self._clock)
        kv = KvBroadcast(
            lambda: secrets.randbits(63) | 1,
            self._clock,
            ring_updates=self._server.kv_ring_updates,
        )
        load = LoadBroadcast(
            engine,
            self._clock,
            weight_version=info.weight_version,
            instance_id=info.instance_id,
        )
        engine.on_kv, engine.on_cleared = kv.record, kv.clear

        def changed() -> None:
            load.notify()
            metrics.rate.sample(engine.stats().generated_tokens_total)

        engine.on_load = changed
        engine.start()
        try:
            http = await self._serve_http(engine, info, metrics)
            info.http_port = _ports(http)[0]
            health = grpc_health.HealthServicer()
            rpc_server, grpc_port = await self._serve_grpc(engine, info, kv, load, health)
            spare_collector(_COLLECT_AFTER_OBJECTS)
            host = self._server.host
            line = worker_ready(
                host_port(host, info.http_port), host_port(host, grpc_port), info.model
            )
            print(line, flush=True)
            await self._until_stopped(stop, engine)
            await self._drain(engine, load, health)
            await rpc_server.stop(grace=1.0)
            await http.cleanup()
            # An engine that has failed for good is no use to anybody, and a process that is gone
            # is what every supervisor understands.
            return 0 if engine.alive else EXIT_ENGINE_FAILED
        finally:
            engine.stop()

    async def _until_stopped(self, stop: asyncio.Event, engine: Engine) -> None:
        """A signal came, or the engine failed for good."""
        while engine.alive and not stop.is_set():
            await wait_for_change(stop, ENGINE_LOOK_S)

    def _serving(self) -> bool:
        return not self._draining

    async def _serve_http(
        self, engine: Engine, info: pb.WorkerInfo, metrics: WorkerMetrics
    ) -> web.AppRunner:
        app = web.Application(
            middlewares=[errors_as_json], client_max_size=self._server.max_payload_size
        )
        app.on_response_prepare.append(without_versions)
        encoder = PromptEncoder(self._model.tokenizer_bundle)
        arriving_requests = ArrivingRequests()
        GenerationRoutes(
            engine,
            encoder,
            info,
            time.time,
            self._serving,
            arriving_requests,
            report_cached=self._server.enable_cache_report,
        ).add_to(app)
        AdminRoutes(
            engine,
            info,
            metrics if self._server.enable_metrics else None,
            asdict(self._config),
            self._serving,
            arriving_requests,
        ).add_to(app)
        # A handler whose client has left is cancelled: it detaches, and the engine aborts.
        runner = Runner(
            app,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=75.0,
            logger=http_log("radixgate.worker.http"),
        )
        await runner.setup()
        host, port = self._server.host, self._server.port
        tls = self._server.for_http()
        try:
            bound = on_every_address(host, port)
            if bound is not None:
                await web.SockSite(runner, bound, ssl_context=tls).start()
            else:
                await web.TCPSite(runner, host, port, ssl_context=tls).start()
        except OSError as exc:
            raise ConfigError(f"--port {port} cannot be used at {host}: {exc.strerror}") from exc
        return runner

    async def _serve_grpc(
        self,
        engine: Engine,
        info: pb.WorkerInfo,
        kv: KvBroadcast,
        load: LoadBroadcast,
        health: grpc_health.HealthServicer,
    ) -> tuple[grpc.aio.Server, int]:
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
                # Two workers on one port would take each other's requests.
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ]
        )
        service = WorkerService(engine, info, self._model.tokenizer_bundle, kv, load, self._serving)
        rpc.add_WorkerServicer_to_server(service, server)  # type: ignore[no-untyped-call]
        health_pb2_grpc.add_HealthServicer_to_server(health, server)
        address = host_port(self._server.host, self._server.grpc_port)
        try:
            pems = self._server.for_grpc()
            port = (
                server.add_insecure_port(address)
                if pems is None
                else server.add_secure_port(address, _credentials(pems))
            )
        except RuntimeError as exc:
            raise ConfigError(
                f"--grpc-port {self._server.grpc_port} cannot be used at {self._server.host}: it is"
                " taken, or that is no address of this machine; 0 picks a free one"
            ) from exc
        await server.start()
        await health.set("", health_pb2.HealthCheckResponse.SERVING)
        return server, port

    async def _drain(
        self, engine: Engine, load: LoadBroadcast, health: grpc_health.HealthServicer
    ) -> None:
        """Say that we stop, then let what runs run on up to the grace time."""
        self._draining = True
        load.phase = "draining"
        _log.info("draining", extra=fields(grace_s=self._server.shutdown_grace_period_secs))
        await health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._server.shutdown_grace_period_secs):
                while engine.stats().running or engine.stats().waiting:
                    await wait_for_change(load.changed(), 1.0)

    def _info(self, engine: Engine) -> pb.WorkerInfo:
        stats = engine.stats()
        config, model = self._config, self._model
        name = self._server.served_model_name or Path(config.model_path).name
        return pb.WorkerInfo(
            instance_id=uuid.uuid4().hex,
            model=name,
            model_path=config.model_path,
            weights_id=model.weights_id,
            weight_version=config.weight_version,
            page_size=config.page_size,
            capacity_tokens=stats.pages.total * config.page_size,
            context_length=config.context_length or model.config.context_length,
            vocab_size=model.config.vocab_size,
            max_running_requests=config.max_running_requests,
            version=__version__,
            contract=CONTRACT_VERSION,
        )


def _ports(runner: web.AppRunner) -> Sequence[int]:
    return [address[1] for address in runner.addresses]


def _credentials(pems: GrpcCertificates) -> grpc.ServerCredentials:
    asked = pems.client_roots is not None
    return grpc.ssl_server_credentials(
        [(pems.key, pems.chain)], pems.client_roots, require_client_auth=asked
    )
