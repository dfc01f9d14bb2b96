"""A fault of ours in an attempt says nothing of the worker that it was at."""

import asyncio

import pytest

from attached_gateway import attached_gateway
from items import item
from own_faults import INTERNAL, Faults, one_at_a_time, streaming, told
from radixgate.gateway.observe.story import Story
from radixgate.gateway.upstream.connection import UpstreamConnection
from radixgate.gateway.workers.grpc_attempt import GrpcAttempt
from radixgate.gateway.workers.http_attempt import HttpAttempt
from radixgate.proto.generated import worker_pb2 as pb
from raw_client import Answer
from scripted_worker import ScriptedWorker, chat_answer
from small_gateway import SmallGateway, small_gateway
from told_gateway import Kept, told_gateway
from until import PATIENCE_S, until


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


def blamed(gateway: SmallGateway) -> dict[str, int]:
    """What is counted against workers, and what their breakers have noted."""
    path = gateway.gateway.headquarters.path
    failing = {worker_id: one.failures for worker_id, one in path._breakers.failing.items()}
    return {**path.metrics.worker_failures, **failing}


def told_as_ours(reply: Answer) -> bool:
    return INTERNAL.encode() in reply.body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(HttpAttempt, "send", id="it-is-sent"),
        pytest.param(HttpAttempt, "on_response", id="a-head-comes"),
        pytest.param(HttpAttempt, "on_data", id="a-piece-comes"),
        pytest.param(UpstreamConnection, "received", id="a-piece-is-handed-on"),
    ],
)
async def test_at_a_foreign_worker(faults: Faults, owner: type, name: str, stream: bool) -> None:
    async with (
        ScriptedWorker() as worker,
        # The fault is for the request: no check is to come by before it.
        small_gateway([worker], rules=one_at_a_time(), health_check_interval_secs=600.0) as gateway,
    ):
        worker.script = streaming("a", "b") if stream else lambda request: chat_answer()
        assert (await gateway.chat()).status == 200, "from here on its connection is a kept one"
        asked = len(worker.requests)
        faults.strike(owner, name)
        reply = await told(gateway, stream=stream)
        if faults.struck:
            assert told_as_ours(reply)
        assert len(worker.requests) <= asked + 1, "it is not computed again"
        assert blamed(gateway) == {}
        assert gateway.in_flight() == 0


@pytest.mark.parametrize("name", ["on_item", "on_refused"])
async def test_at_a_worker_of_ours(faults: Faults, name: str) -> None:
    async with attached_gateway() as (gateway, worker):
        faults.strike(GrpcAttempt, name)
        asking = asyncio.create_task(gateway.chat())
        submit = (await worker.next_command()).submit
        if name == "on_item":
            await worker.send(item("a", ids=[1], handle=submit.handle, counts=(5, 0, 1)))
        else:
            await worker.send(refused=pb.Refused(handle=submit.handle, status=400, message="no"))
        async with asyncio.timeout(PATIENCE_S):
            assert told_as_ours(await asking)
        assert faults.struck == 1
        assert worker.connections == 1, "the stream is everybody's, and stays"
        assert blamed(gateway) == {}
        assert gateway.in_flight() == 0


@pytest.mark.parametrize("name", ["asked", "leased", "attempt_ended"])
async def test_a_listener_that_fails_keeps_no_lease(faults: Faults, name: str) -> None:
    async with ScriptedWorker() as worker, told_gateway([worker], tellers=[Kept()]) as gateway:
        faults.strike(Story, name)
        reply = await told(gateway, stream=False)
        assert faults.struck == 1
        assert told_as_ours(reply)
        assert gateway.in_flight() == 0
        assert blamed(gateway) == {}
        gateway.gateway.fleet.check()
        gateway.gateway.headquarters.path.choice.check()


async def test_one_that_cannot_be_told_of_a_broken_stream_keeps_no_other_from_it(
    faults: Faults,
) -> None:
    async with attached_gateway(retry_max_retries=0) as (gateway, worker):
        asking = [asyncio.create_task(gateway.chat(text)) for text in "ab"]
        await until(lambda: worker.stream.in_flight == 2)
        faults.strike(GrpcAttempt, "on_lost")
        await worker.die()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        assert [one.result().status for one in asking if one.done()] == [502]
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
