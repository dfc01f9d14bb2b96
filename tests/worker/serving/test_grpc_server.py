"""The gateway's stream at the worker: who reads columns gets them, and many credits count."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import cast

import grpc
import pytest

from items import item
from radixgate.proto.contract import CONTRACT_VERSION
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.engine.engine import Engine
from radixgate.worker.serving.grpc_server import AttachedGateway, Context, WorkerService
from radixgate.worker.serving.kv_broadcast import KvBroadcast
from radixgate.worker.serving.load_broadcast import LoadBroadcast
from until import PATIENCE_S


class Credited:
    """An engine that only notes what it is told."""

    def __init__(self) -> None:
        self.credits: list[tuple[int, int]] = []
        self.sink: AttachedGateway | None = None

    def add_credit(self, sink: AttachedGateway, handle: int, tokens: int) -> None:
        self.credits.append((handle, tokens))

    def submit(self, sink: AttachedGateway, submit: pb.Submit) -> None:
        batch = pb.StepBatch(step=1, items=[item("a", ids=[7], handle=submit.handle)])
        sink.deliver(batch)

    def detach(self, sink: AttachedGateway) -> None:
        self.sink = sink


class Written:
    """A call's context; the stream ends with what was to be written."""

    def __init__(self) -> None:
        self.batches: list[pb.StepBatch] = []
        self.came = asyncio.Event()
        self.aborted: tuple[grpc.StatusCode, str] | None = None

    async def abort(self, code: grpc.StatusCode, why: str) -> None:
        self.aborted = code, why
        raise grpc.aio.AbortError

    async def write(self, batch: pb.StepBatch) -> None:
        self.batches.append(batch)
        self.came.set()


async def attached(
    *commands: pb.Command, written: Written | None = None
) -> tuple[Credited, Sequence[pb.StepBatch]]:
    """What the worker did and said before the gateway went."""
    engine, written = Credited(), written or Written()

    async def sent() -> AsyncIterator[pb.Command]:
        for command in commands:
            yield command
        await written.came.wait()

    service = WorkerService(
        cast(Engine, engine),
        pb.WorkerInfo(),
        b"",
        cast(KvBroadcast, None),
        cast(LoadBroadcast, None),
        lambda: True,
    )
    async with asyncio.timeout(PATIENCE_S):
        await service.Attach(sent(), cast(Context, written))
    assert engine.sink is not None
    return engine, written.batches


def hello(*, reads_tokens: bool) -> pb.Command:
    return pb.Command(
        hello=pb.Hello(gateway_id="g", version=CONTRACT_VERSION, reads_tokens=reads_tokens)
    )


@pytest.mark.parametrize("reads_tokens", [True, False])
async def test_a_gateway_that_reads_columns_gets_them(reads_tokens: bool) -> None:
    submit = pb.Command(submit=pb.Submit(handle=3))
    _, (batch,) = await attached(hello(reads_tokens=reads_tokens), submit)
    assert batch.HasField("tokens") is reads_tokens
    assert list(batch.tokens.handles) == [3] * reads_tokens
    assert len(batch.items) == 1 - reads_tokens


async def test_credits_count_one_by_one() -> None:
    several = pb.Command(credits=pb.Credits(handles=[3, 4], tokens=[10, 20]))
    submit = pb.Command(submit=pb.Submit(handle=3))
    engine, _ = await attached(hello(reads_tokens=True), several, submit)
    assert engine.credits == [(3, 10), (4, 20)]


async def test_credits_without_a_count_for_each_end_the_stream_and_give_nothing() -> None:
    written = Written()
    wrong = pb.Command(credits=pb.Credits(handles=[3, 4], tokens=[10]))
    engine, _ = await attached(hello(reads_tokens=True), wrong, written=written)
    assert engine.credits == []
    assert written.aborted == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "credits of 2 handles and 1 counts of tokens",
    )
