"""A fault of the gateway's own, wherever it strikes a request: one error, and nothing is kept."""

import asyncio
import json

import pytest

from own_faults import (
    INTERNAL,
    Faults,
    check_nothing_is_kept,
    messages,
    one_at_a_time,
    streaming,
    told,
)
from radixgate.fleet.fleet import WorkerState
from radixgate.fleet.lease import Lease
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.choice.another_try import AnotherTry
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.entry.http_front import FrontConnection
from radixgate.gateway.exchange.client_answer import ClientAnswer
from radixgate.gateway.observe.metrics import GatewayMetrics
from radixgate.gateway.workers.http_attempt import HttpAttempt
from radixgate.gateway.workers.worker_foreign import ForeignWorker
from raw_client import RawClient, request
from scripted_worker import (
    Hang,
    Reset,
    ScriptedWorker,
    chat_answer,
)
from small_gateway import CHAT, chat_body, small_gateway
from until import PATIENCE_S, until
from virtual_time import LoopClock, in_virtual_time

CHECKED = "a check went wrong"


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


BEFORE_A_BYTE = [
    pytest.param(False, WorkerChoice, "lease", id="a-worker-is-chosen"),
    pytest.param(False, HttpAttempt, "send", id="it-is-sent"),
    pytest.param(False, Lease, "first_output", id="a-whole-answer-has-come"),
    pytest.param(False, WorkerChoice, "ended", id="its-attempt-ends"),
    pytest.param(True, HttpAttempt, "on_response", id="a-head-comes"),
    pytest.param(True, ClientAnswer, "begin", id="the-first-piece-comes"),
    pytest.param(True, FrontConnection, "on_begin", id="it-begins-to-go-out"),
]


@pytest.mark.parametrize(("stream", "owner", "name"), BEFORE_A_BYTE)
async def test_before_a_byte_has_gone_out_the_error_is_the_answer(
    faults: Faults, caplog: pytest.LogCaptureFixture, stream: bool, owner: type, name: str
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time()) as gateway,
    ):
        worker.script = streaming("a", "b") if stream else lambda request: chat_answer()
        faults.strike(owner, name)
        reply = await told(gateway, stream=stream)
        assert (reply.status, reply.json["error"]["message"]) == (500, INTERNAL)
        await check_nothing_is_kept(gateway, worker, faults, messages(caplog))


WITHIN_A_STREAM = [
    pytest.param(ChunkLane, "send", 1, False, id="a-later-piece-comes"),
    pytest.param(ChunkLane, "send", 2, True, id="an-event-goes-out"),
    pytest.param(WorkerChoice, "ended", 1, True, id="the-attempt-has-ended"),
    pytest.param(GatewayMetrics, "answered", 1, False, id="the-answer-is-counted"),
]


@pytest.mark.parametrize(("owner", "name", "call", "after"), WITHIN_A_STREAM)
async def test_within_a_stream_there_is_one_error_event(
    faults: Faults,
    caplog: pytest.LogCaptureFixture,
    owner: type,
    name: str,
    call: int,
    after: bool,
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time()) as gateway,
    ):
        worker.script = streaming("a", "b", "c", "d")
        faults.strike(owner, name, call=call, after=after)
        reply = await told(gateway, stream=True)
        assert reply.status == 200
        errors = [event for event in reply.events if b'"error"' in event]
        assert [json.loads(event)["error"]["message"] for event in errors] == [INTERNAL]
        assert reply.events[-2:] == [errors[0], b"[DONE]"]
        await check_nothing_is_kept(gateway, worker, faults, messages(caplog))


AT_THE_END = [
    pytest.param(False, FrontConnection, "on_answer", id="a-whole-answer"),
    pytest.param(False, GatewayMetrics, "answered_whole", id="a-whole-answer-is-counted"),
    pytest.param(True, FrontConnection, "on_end", id="a-stream"),
]


@pytest.mark.parametrize(("stream", "owner", "name"), AT_THE_END)
async def test_where_the_end_itself_fails_the_client_is_cut_off_and_counted_once(
    faults: Faults, caplog: pytest.LogCaptureFixture, stream: bool, owner: type, name: str
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time()) as gateway,
    ):
        worker.script = streaming("a", "b") if stream else lambda request: chat_answer()
        faults.strike(owner, name, after=owner is GatewayMetrics)
        async with asyncio.timeout(PATIENCE_S), RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(stream=stream)))
            if stream:
                assert (await client.answer()).cut
            else:
                assert await client.ended()
        await check_nothing_is_kept(gateway, worker, faults, messages(caplog))


async def test_a_failure_whose_working_off_fails_is_told(
    faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time()) as gateway,
    ):
        worker.script = lambda request: [Reset()]
        faults.strike(AnotherTry, "wait_s")
        reply = await told(gateway, stream=False)
        assert (reply.status, reply.json["error"]["message"]) == (500, INTERNAL)
        await check_nothing_is_kept(gateway, worker, faults, messages(caplog))


@in_virtual_time
async def test_a_silence_whose_working_off_fails_is_told(
    faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway(
            [worker], rules=one_at_a_time(), clock=LoopClock(), request_timeout_secs=0.05
        ) as gateway,
    ):
        worker.script = lambda request: [Hang()]
        faults.strike(HttpAttempt, "cancel")
        reply = await told(gateway, stream=False)
        assert (reply.status, reply.json["error"]["message"]) == (500, INTERNAL)
        await check_nothing_is_kept(gateway, worker, faults, messages(caplog))


async def test_in_a_check_it_takes_no_worker_down_that_is_up(
    faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway(
            [worker], health_check_interval_secs=0.01, health_failure_threshold=1
        ) as gateway,
    ):
        for _ in range(3):
            caplog.clear()
            faults.strike(ForeignWorker, "probe")
            await until(lambda: CHECKED in messages(caplog))
            assert gateway.state_of(worker) is WorkerState.READY
        await worker.stop()
        await until(lambda: gateway.state_of(worker) is WorkerState.DOWN)
