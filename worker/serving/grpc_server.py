"""The worker contract over gRPC; see `proto/worker.proto`."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import grpc
import xxhash

from radixgate.log import fields
from radixgate.proto.contract import CONTRACT_VERSION
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc
from radixgate.proto.step_tokens import with_tokens
from radixgate.worker.engine.engine import Engine
from radixgate.worker.serving.kv_broadcast import KvBroadcast
from radixgate.worker.serving.load_broadcast import LoadBroadcast

TOKENIZER_PART_BYTES = 512 * 1024
_log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[object, object]


class AttachedGateway:
    """One gateway's stream: a sink of the engine whose batches are merged until they are sent.

    What is kept is bounded by the credit of the gateway's requests; a gateway that reads slowly
    gets fewer, larger batches.
    """

    def __init__(self) -> None:
        self.gateway_id = ""
        self.reads_tokens = False
        self._pending = pb.StepBatch()
        self._wake = asyncio.Event()

    def deliver(self, batch: pb.StepBatch) -> None:
        self._pending.MergeFrom(batch)
        self._wake.set()

    async def batches(self) -> AsyncIterator[pb.StepBatch]:
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch, self._pending = self._pending, pb.StepBatch()
            yield with_tokens(batch) if self.reads_tokens else batch


class WorkerService(rpc.WorkerServicer):
    """Translates between the contract and the engine; holds no state of its own."""

    def __init__(
        self,
        engine: Engine,
        info: pb.WorkerInfo,
        tokenizer_bundle: bytes,
        kv: KvBroadcast,
        load: LoadBroadcast,
        serving: Callable[[], bool],
    ) -> None:
        """`serving` False: the worker drains, and takes no new prompts."""
        self._serving = serving
        self._engine = engine
        self._info = info
        self._tokenizer_bundle = tokenizer_bundle
        self._kv = kv
        self._load = load
        self._info.tokenizer_hash = xxhash.xxh3_128_hexdigest(tokenizer_bundle)
        self._sinks: dict[str, AttachedGateway] = {}

    async def Attach(self, commands: AsyncIterator[pb.Command], context: Context) -> None:
        sink = AttachedGateway()
        reader = asyncio.create_task(self._read(commands, sink, context))
        writer = asyncio.create_task(self._write(sink, context))
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            # However the stream ended: nobody will take what its requests produce.
            reader.cancel()
            writer.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)
            self._engine.detach(sink)
            if self._sinks.get(sink.gateway_id) is sink:
                del self._sinks[sink.gateway_id]
            _log.info("gateway detached", extra=fields(gateway=sink.gateway_id))

    async def _read(
        self, commands: AsyncIterator[pb.Command], sink: AttachedGateway, context: Context
    ) -> None:
        async for command in commands:
            kind = command.WhichOneof("kind")
            if kind == "submit":
                if self._serving():
                    self._engine.submit(sink, command.submit)
                else:
                    sink.deliver(_draining(command.submit.handle))
            elif kind == "credit":
                self._engine.add_credit(sink, command.credit.handle, command.credit.tokens)
            elif kind == "credits":
                credits = command.credits
                handles, counts = len(credits.handles), len(credits.tokens)
                if handles != counts:
                    await context.abort(
                        grpc.StatusCode.INVALID_ARGUMENT,
                        f"credits of {handles} handles and {counts} counts of tokens",
                    )
                for handle, tokens in zip(credits.handles, credits.tokens, strict=True):
                    self._engine.add_credit(sink, handle, tokens)
            elif kind == "abort":
                self._engine.abort(sink, command.abort.handle)
            elif kind == "hello":
                if command.hello.version != CONTRACT_VERSION:
                    await context.abort(
                        grpc.StatusCode.FAILED_PRECONDITION,
                        f"contract {command.hello.version} is spoken to me, I speak"
                        f" {CONTRACT_VERSION}: update the older of the two",
                    )
                sink.gateway_id = command.hello.gateway_id
                sink.reads_tokens = command.hello.reads_tokens
                self._sinks[sink.gateway_id] = sink
                _log.info("gateway attached", extra=fields(gateway=sink.gateway_id))

    async def _write(self, sink: AttachedGateway, context: Context) -> None:
        async for batch in sink.batches():
            await context.write(batch)

    async def WatchKv(
        self, request: pb.WatchKvRequest, context: Context
    ) -> AsyncIterator[pb.KvUpdate]:
        async for update in self._kv.follow(request.epoch, request.seq):
            yield update

    async def WatchLoad(
        self, request: pb.WatchLoadRequest, context: Context
    ) -> AsyncIterator[pb.LoadReport]:
        async for report in self._load.follow(lambda: self._sinks.get(request.gateway_id)):
            yield report

    async def Flush(self, request: pb.FlushRequest, context: Context) -> pb.FlushReply:
        ok, message = await self._engine.flush()
        return pb.FlushReply(ok=ok, message=message)

    async def GetInfo(self, request: pb.GetInfoRequest, context: Context) -> pb.WorkerInfo:
        return self._info

    async def GetTokenizer(
        self, request: pb.GetTokenizerRequest, context: Context
    ) -> AsyncIterator[pb.TokenizerPart]:
        bundle = self._tokenizer_bundle
        for start in range(0, len(bundle), TOKENIZER_PART_BYTES):
            end = start + TOKENIZER_PART_BYTES
            yield pb.TokenizerPart(data=bundle[start:end], last=end >= len(bundle))


def _draining(handle: int) -> pb.StepBatch:
    refused = pb.Refused(handle=handle, status=503, message="the worker is draining")
    return pb.StepBatch(refused=[refused])
