"""A worker of ours whose stream is between two connections takes nothing, and others are there."""

import asyncio

import pytest

from attached_gateway import attached_gateway, join_attached
from attached_worker import AttachedWorker
from clocks import FakeClock
from items import item
from radixgate.errors import RadixgateError, WorkerFailed
from radixgate.gateway.upstream.reconnect_pause import ReconnectPause
from radixgate.proto.generated import worker_pb2 as pb
from small_gateway import small_gateway


class Lost:
    """A receiver that is to hear nothing else."""

    def __init__(self) -> None:
        self.error: RadixgateError | None = None

    def on_item(self, item: pb.Item) -> None:
        raise AssertionError(item)

    def on_token(self, token_id: int, text: str) -> None:
        raise AssertionError(text)

    def on_flowed(self) -> None:
        raise AssertionError("flowed")

    def on_refused(self, refused: pb.Refused) -> None:
        raise AssertionError(refused)

    def on_lost(self, error: RadixgateError) -> None:
        self.error = error


async def test_what_fails_for_want_of_a_stream_says_when_the_next_one_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ReconnectPause, "end", lambda pause: 60.0)
    async with AttachedWorker() as worker:
        lost, submit = Lost(), pb.Submit(input_ids=bytes(4))
        worker.stream.submit([submit], [lost])
        await worker.die()
        assert isinstance(lost.error, WorkerFailed)
        assert lost.error.rest_s == pytest.approx(60.0, abs=0.01)
        worker.clock.advance(45.0)
        with pytest.raises(WorkerFailed, match="worker-1 is not attached") as failed:
            worker.stream.submit([submit], [lost])
        assert failed.value.rest_s == pytest.approx(15.0, abs=0.01)


async def answer(worker: AttachedWorker, submit: pb.Submit) -> None:
    await worker.send(item("ok", ids=[1], finish="length", counts=(9, 0, 1), handle=submit.handle))


async def test_others_take_all_of_it_meanwhile_and_only_what_ran_there_has_failed() -> None:
    async with (
        small_gateway([], clock=FakeClock()) as gateway,  # so it rests as long as this takes
        AttachedWorker() as one,
        AttachedWorker() as other,
    ):
        for name, worker in (("one", one), ("other", other)):
            join_attached(gateway.gateway, worker.stream, name)
        asked = asyncio.create_task(gateway.chat())
        waits = {asyncio.create_task(worker.next_command()): worker for worker in (one, other)}
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        broken = waits.pop(done.pop())
        ((awaited, sound),) = waits.items()
        await broken.die()
        await answer(sound, (await awaited).submit)
        assert (await asked).status == 200
        for _ in range(4):
            asked = asyncio.create_task(gateway.chat())
            await answer(sound, (await sound.next_command()).submit)
            assert (await asked).status == 200
        metrics = gateway.gateway.metrics
        assert (metrics.retries, sum(metrics.worker_failures.values())) == (1, 1)
        for name in ("one", "other"):
            gateway.gateway.fleet.remove(name)


async def test_where_nobody_else_is_it_is_tried_until_the_stream_is_there_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ReconnectPause, "end", lambda pause: 0.03)
    async with attached_gateway(retry_max_backoff_ms=10.0, retry_max_retries=5) as (
        gateway,
        worker,
    ):
        asked = asyncio.create_task(gateway.chat())
        assert (await worker.next_command()).submit.input_ids
        await worker.die()
        assert (await worker.next_command()).HasField("hello")
        await answer(worker, (await worker.next_command()).submit)
        assert (await asked).status == 200
