"""A worker of ours behind gRPC: who it is, what it reports, and the orders it takes."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from radixgate.errors import ModelError, RadixgateError, WorkerFailed, WorkerUnreachable
from radixgate.fleet.fleet import MirrorKey, WorkerIdentity, WorkerState
from radixgate.gateway.asking.prompt_tokens import ModelEncoder, ServedModel
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.upstream.attach import AttachStream
from radixgate.gateway.upstream.fetch import Fetched, fetch
from radixgate.gateway.upstream.grpc_endpoint import GrpcEndpoint
from radixgate.gateway.upstream.http2_silence import Pings
from radixgate.gateway.upstream.http2_stream import MAX_MESSAGE_BYTES, Http2Stream
from radixgate.gateway.workers.grpc_client import GrpcWorkerClient
from radixgate.gateway.workers.grpc_worker_parts import GrpcWorkerParts
from radixgate.gateway.workers.worker_address import WorkerAddress
from radixgate.gateway.workers.worker_handle import OrderResult
from radixgate.gateway.workers.worker_watches import WorkerWatches
from radixgate.proto.contract import CONTRACT_VERSION
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc
from radixgate.text.prompt_encoder import PromptEncoder

TOKENS: Literal["tokens"] = "tokens"
_MAX_TOKENIZER_BYTES = 256 * 1024 * 1024
_SERVICE = pb.DESCRIPTOR.services_by_name["Worker"].full_name
# Who is believed over TLS where no authorities are named, as by gRPC itself.
_GRPC_AUTHORITIES = Path(grpc.__file__).parent / "_cython/_credentials/roots.pem"
_CHANNEL_OPTIONS = (
    # Prompts go to the worker and nowhere else, whatever proxy the environment names.
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # A worker that returns is to be noticed within a second, not within the library's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Calls are mostly too short for a ping, but with these the kernel gives a connection up on
    # which what was sent is not acknowledged for five seconds (TCP_USER_TIMEOUT). It would go on
    # for a quarter of an hour, with ever longer pauses, and a worker whose machine was away for
    # minutes would have to wait for the end of one. The streams have `Silence`.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    # Nothing is shared with another channel to the same address, its backoff least of all.
    ("grpc.use_local_subchannel_pool", 1),
    # A window of one size. One that follows the line is measured by pings, and each of them wakes
    # three of gRPC's threads.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 1024 * 1024),
)


class GrpcWorker:
    """A `WorkerHandle`. Its connections are made when first used, and again by themselves."""

    def __init__(self, address: WorkerAddress, parts: GrpcWorkerParts) -> None:
        self._address = address
        self._parts = parts
        if parts.certificates is None:
            self._channel = grpc.aio.insecure_channel(address.id, options=_CHANNEL_OPTIONS)
        else:
            pems = parts.certificates
            credentials = grpc.ssl_channel_credentials(pems.roots, pems.key, pems.chain)
            self._channel = grpc.aio.secure_channel(
                address.id, credentials, options=_CHANNEL_OPTIONS
            )
        self._stub = rpc.WorkerStub(self._channel)  # type: ignore[no-untyped-call]
        self._health = health_pb2_grpc.HealthStub(self._channel)
        self._endpoint = self._streams_endpoint()
        self._pings = Pings()
        attach = partial(self._dial, "Attach")
        self._attach = AttachStream(attach, parts.gateway_id, address.id, parts.clock)
        self._info: pb.WorkerInfo | None = None  # None: it has not answered a probe yet
        self._closing: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[ModelEncoder] | None = None
        self._client = GrpcWorkerClient(
            self._attach,
            served=self._served,
            wall_clock=parts.wall_clock,
            rng=parts.rng,
            new_rid=parts.new_rid,
            on_close=self._close_channel,
        )
        self._watches = WorkerWatches(
            self._dial,
            address.id,
            parts.fleet,
            parts.gateway_id,
            parts.mirror_file,
            parts.watch_counts,
            parts.clock,
        )

    def _streams_endpoint(self) -> GrpcEndpoint:
        address, certificates = self._address, self._parts.certificates
        # A distribution may have left them out: then the system's are believed, as by gRPC.
        known = str(_GRPC_AUTHORITIES) if _GRPC_AUTHORITIES.exists() else None
        tls = None if certificates is None else certificates.http2(known)
        return GrpcEndpoint(address.host, address.port, address.id, tls)

    def _dial(self, method: str, on_message: Callable[[bytes], None]) -> Http2Stream:
        """For what comes many times a second: gRPC's threads cost more than reading it."""
        return Http2Stream(self._endpoint, f"/{_SERVICE}/{method}", on_message, self._pings)

    @property
    def client(self) -> GrpcWorkerClient:
        return self._client

    async def probe(self) -> WorkerIdentity:
        """Raises WorkerUnreachable if nobody listens, WorkerFailed if the answer is no good."""
        try:
            info = await self._stub.GetInfo(pb.GetInfoRequest(), timeout=self._parts.timeout_s)
            if info.contract != CONTRACT_VERSION:
                raise WorkerFailed(
                    f"worker {self._address.id} speaks contract {info.contract}, this gateway"
                    f" {CONTRACT_VERSION}: update the older of the two"
                )
            self._check_weights(info)
            await self._check_serving()
            await self._learn(info)
        except grpc.aio.AioRpcError as exc:
            raise self._failure(exc) from exc
        if self._info is not None and self._info.instance_id != info.instance_id:
            self._pings.start_over()
        self._info = info
        return WorkerIdentity(
            id=self._address.id,
            url=self._address.url,
            kind="grpc",
            model=info.model,
            mirror=MirrorKey(info.model, TOKENS, info.page_size),
            capacity_tokens=info.capacity_tokens,
            weights_id=info.weights_id,
            instance_id=info.instance_id,
            reports_kv=True,
        )

    async def run(self) -> None:
        """The streams that go on while the worker is in the fleet; each reconnects by itself."""
        async with asyncio.TaskGroup() as streams:
            streams.create_task(self._attach.run())
            streams.create_task(self._watches.kv())
            streams.create_task(self._watches.load())

    def close(self) -> None:
        self._client.close()

    def heard(self) -> bool:
        heard, self._attach.heard = self._attach.heard, False
        return heard

    async def flush_cache(self) -> OrderResult:
        try:
            reply = await self._stub.Flush(pb.FlushRequest(), timeout=self._parts.timeout_s)
        except grpc.aio.AioRpcError as exc:
            return OrderResult(False, self._failure(exc).message)
        return OrderResult(reply.ok, reply.message)

    async def abort_request(self, order: AbortOrder) -> OrderResult:
        """Requests that this gateway has sent; another gateway's are that one's to abort."""
        count = self._client.abort(order)
        return OrderResult(True, f"{count} aborted", {"aborted": count})

    async def read_rids(self) -> None:
        """They are known."""

    def expect_abort(self, order: AbortOrder) -> Callable[[bool], None]:
        return lambda taken: None  # a worker of ours ends by nobody's order what is not that one's

    def runs(self, order: AbortOrder) -> bool:
        return self._client.runs(order)

    async def ask(self, method: str, path: str, body: bytes) -> Fetched:
        raise WorkerFailed(f"worker {self._address.id} is not asked by HTTP")

    async def info(self, path: str) -> OrderResult:
        if self._info is None or self._info.http_port == 0:
            return OrderResult(False, f"worker {self._address.id} has no HTTP server")
        pool = self._parts.http_pool(self._address.host, self._info.http_port)
        try:
            answer = await fetch(pool, "GET", path, timeout_s=self._parts.timeout_s)
        except RadixgateError as error:
            return OrderResult(False, error.message)
        finally:
            pool.close()
        return OrderResult(answer.ok, f"status {answer.status}", answer.json())

    def _close_channel(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self._channel.close())

    async def _check_serving(self) -> None:
        """A worker that drains still answers, and must be given nothing new at once."""
        asked = health_pb2.HealthCheckRequest()
        health = await self._health.Check(asked, timeout=self._parts.timeout_s)
        if health.status != health_pb2.HealthCheckResponse.SERVING:
            raise WorkerUnreachable(f"worker {self._address.id} is draining")

    def _check_weights(self, info: pb.WorkerInfo) -> None:
        """Under one name only equal weights: prompts, mirrors and continuations are shared."""
        for record in self._parts.fleet.records():
            other = record.identity
            if other.id == self._address.id or other.kind != "grpc" or other.model != info.model:
                continue
            if other.weights_id != info.weights_id and record.state is WorkerState.READY:
                raise WorkerFailed(
                    f"worker {self._address.id} serves other weights as {info.model!r} than"
                    f" {other.id}: give one of them another --served-model-name"
                )

    async def _learn(self, info: pb.WorkerInfo) -> None:
        """Take up the model, and its tokenizer if no worker has brought that one yet."""
        prompts = self._parts.prompts
        known = prompts.served(info.model)
        if known is not None and known.weights_id == info.weights_id:
            return
        encoder = prompts.encoder_of(info.tokenizer_hash)
        if encoder is None:
            encoder = await self._read_encoder()
        prompts.learn(
            ServedModel(
                name=info.model,
                weights_id=info.weights_id,
                tokenizer_hash=info.tokenizer_hash,
                vocab_size=info.vocab_size,
                context_length=info.context_length,
                encoder=encoder,
            )
        )

    async def _read_encoder(self) -> ModelEncoder:
        """Goes on when a probe is given up for lack of time; a later probe finds it done."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._build_encoder())
        try:
            encoder = await asyncio.shield(self._reading)
        except ModelError as exc:
            raise WorkerFailed(f"worker {self._address.id}: {exc.message}") from exc
        finally:
            if self._reading.done():
                self._reading = None
        return encoder

    async def _build_encoder(self) -> ModelEncoder:
        """Off the loop: a large vocabulary takes a third of a second. Raises ModelError."""
        bundle = await self._tokenizer()
        return await self._parts.prompts.off_the_loop(lambda: PromptEncoder(bundle))

    async def _tokenizer(self) -> bytes:
        bundle = bytearray()
        async for part in self._stub.GetTokenizer(pb.GetTokenizerRequest(), timeout=60.0):
            bundle += part.data
            if len(bundle) > _MAX_TOKENIZER_BYTES:
                raise WorkerFailed(
                    f"worker {self._address.id}: its tokenizer is over {_MAX_TOKENIZER_BYTES} bytes"
                )
        return bytes(bundle)

    def _served(self) -> ServedModel:
        assert self._info is not None, "a request came before the worker has answered a probe"
        served = self._parts.prompts.served(self._info.model)
        assert served is not None
        return served

    def _failure(self, exc: grpc.aio.AioRpcError) -> WorkerFailed:
        said = f"worker {self._address.id}: {exc.details() or exc.code().name}"
        if exc.code() == grpc.StatusCode.UNAVAILABLE:
            return WorkerUnreachable(said)
        return WorkerFailed(said)
