"""A worker of ours that computes nothing: it answers each prompt at once and then by a metronome.

One process, one port. It speaks `worker.proto` as far as a gateway needs it; the model is the toy
model, for its tokenizer. A step brings one token to every row that has credit left.
"""

import argparse
import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import uvloop
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as grpc_health

from radixgate.proto.contract import CONTRACT_VERSION
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generated import worker_pb2_grpc as rpc
from radixgate.proto.step_tokens import with_tokens
from radixgate.worker.weights.toy import toy_tokenizer_bundle

Context = grpc.aio.ServicerContext[Any, Any]
PART_BYTES = 1_000_000
TOKEN, TEXT = 300, " word"


@dataclass(slots=True, eq=False)
class Row:
    """One answer under way."""

    handle: int
    prompt: int  # tokens
    left: int  # tokens to be sent
    credit: int
    sent: int = 0


class ScriptedService(rpc.WorkerServicer):
    """Every Attach stream has rows of its own, and steps every `gap_s` while it has any."""

    def __init__(self, name: str, gap_s: float) -> None:
        self._name = name
        self._gap_s = gap_s

    async def Attach(
        self, requests: AsyncIterator[pb.Command], context: Context
    ) -> AsyncIterator[pb.StepBatch]:
        rows: dict[int, Row] = {}
        fresh: list[Row] = []
        reads_tokens: list[bool] = []  # once the gateway has said hello
        woken = asyncio.Event()

        async def read() -> None:
            async for command in requests:
                kind = command.WhichOneof("kind")
                if kind == "submit":
                    submit = command.submit
                    most = submit.sampling.max_tokens or 16
                    row = Row(submit.handle, len(submit.input_ids) // 4, most, submit.credit)
                    rows[row.handle] = row
                    fresh.append(row)
                    woken.set()
                elif kind == "credit" and command.credit.handle in rows:
                    rows[command.credit.handle].credit += command.credit.tokens
                elif kind == "credits":
                    credits = command.credits
                    for handle, tokens in zip(credits.handles, credits.tokens, strict=True):
                        if handle in rows:
                            rows[handle].credit += tokens
                elif kind == "hello":
                    reads_tokens.append(command.hello.reads_tokens)
                elif kind == "abort":
                    rows.pop(command.abort.handle, None)

        reading = asyncio.create_task(read())
        step, loop = 0, asyncio.get_running_loop()
        due = loop.time()
        try:
            while True:
                if not rows:
                    woken.clear()
                    await woken.wait()
                    due = loop.time() + self._gap_s
                turn = list(fresh)
                fresh.clear()
                if not turn and loop.time() >= due:
                    turn = [row for row in rows.values() if row.credit > 0]
                    due = max(due + self._gap_s, loop.time())
                if turn:
                    step += 1
                    batch = pb.StepBatch(step=step, items=[_item(row) for row in turn])
                    yield with_tokens(batch) if True in reads_tokens else batch
                    for row in turn:
                        if not row.left:
                            rows.pop(row.handle, None)
                    continue
                woken.clear()
                try:
                    async with asyncio.timeout(max(0.0, due - loop.time())):
                        await woken.wait()
                except TimeoutError:
                    pass
        finally:
            reading.cancel()

    async def WatchKv(
        self, request: pb.WatchKvRequest, context: Context
    ) -> AsyncIterator[pb.KvUpdate]:
        yield pb.KvUpdate(epoch=1, seq=0, snapshot=pb.KvSnapshotPart(first=True, last=True))
        while True:
            await asyncio.sleep(1.0)
            yield pb.KvUpdate(epoch=1, seq=0, heartbeat=pb.KvHeartbeat())

    async def WatchLoad(
        self, request: pb.WatchLoadRequest, context: Context
    ) -> AsyncIterator[pb.LoadReport]:
        while True:
            yield pb.LoadReport(kv_tokens_total=1_000_000, phase="serving", instance_id=self._name)
            await asyncio.sleep(0.5)

    async def GetInfo(self, request: pb.GetInfoRequest, context: Context) -> pb.WorkerInfo:
        return pb.WorkerInfo(
            instance_id=self._name,
            model="scripted",
            model_path="scripted",
            weights_id="scripted",
            page_size=16,
            capacity_tokens=1_000_000,
            context_length=131_072,
            vocab_size=512,
            tokenizer_hash="scripted",
            max_running_requests=4_096,
            contract=CONTRACT_VERSION,
        )

    async def GetTokenizer(
        self, request: pb.GetTokenizerRequest, context: Context
    ) -> AsyncIterator[pb.TokenizerPart]:
        bundle = toy_tokenizer_bundle()
        for start in range(0, len(bundle), PART_BYTES):
            end = start + PART_BYTES
            yield pb.TokenizerPart(data=bundle[start:end], last=end >= len(bundle))


def _item(row: Row) -> pb.Item:
    item = pb.Item(handle=row.handle, token_ids=(TOKEN,), text=TEXT)
    row.left -= 1
    row.sent += 1
    row.credit -= 1
    if row.sent == 1 or not row.left:
        item.counts.prompt = row.prompt
        item.counts.completion = row.sent
    if not row.left:
        item.finish.reason = pb.Finish.LENGTH
    return item


async def _serve(port: int, gap_s: float) -> None:
    server = grpc.aio.server(options=(("grpc.max_receive_message_length", 64 * 1024 * 1024),))
    service = ScriptedService(f"scripted-{port}", gap_s)
    rpc.add_WorkerServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    health = grpc_health.HealthServicer()
    await health.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(f"scripted worker at 127.0.0.1:{port}", flush=True)
    await stop.wait()
    await server.stop(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--gap-ms", type=float, default=0.0, help="between two steps")
    options = parser.parse_args()
    uvloop.run(_serve(options.port, options.gap_ms / 1_000))


if __name__ == "__main__":
    main()
