"""A fault of the gateway's own, wherever it strikes a request: one error, and nothing is kept."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable

import pytest

from clocks import FakeClock
from radixgate.fleet.lease import Lease, Outcome
from radixgate.gateway import worker_http
from radixgate.gateway.another_try import AnotherTry
from radixgate.gateway.answer_reading import StreamedAnswer
from radixgate.gateway.client_answer import ClientAnswer
from radixgate.gateway.deadlines import NEVER, Deadlines
from radixgate.gateway.exchange import Exchange
from radixgate.gateway.forwarder import Forwarder
from radixgate.gateway.held_answer import HeldAnswer
from radixgate.gateway.http_front import FrontConnection
from radixgate.gateway.limits_config import LimitsConfig
from radixgate.gateway.metrics import GatewayMetrics
from radixgate.gateway.rules import GatewayRules
from radixgate.gateway.upstream_connection import UpstreamConnection
from radixgate.gateway.worker_choice import WorkerChoice
from radixgate.gateway.worker_http import HttpAttempt
from raw_client import Answer, RawClient, request
from scripted_worker import (
    Hang,
    Recorded,
    Reset,
    ScriptedWorker,
    Step,
    chat_answer,
    events,
    good_answer,
    sse_end,
    sse_head,
)
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import until

INTERNAL = "internal error; the log has the details"


class Faults:
    """Functions that fail, and how often each lease was closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.struck = 0
        self.closed: Counter[int] = Counter()
        close = Lease.close

        def counted(lease: Lease, outcome: Outcome, cached_tokens: int | None = None) -> None:
            self.closed[lease.number] += 1
            close(lease, outcome, cached_tokens)

        monkeypatch.setattr(Lease, "close", counted)

    def strike(self, owner: type, name: str, *, call: int = 1, after: bool = False) -> None:
        """The `call`th one raises; `after`: when it has done what it does."""
        real: Callable[..., object] = getattr(owner, name)
        calls = 0

        def faulty(*args: object, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls != call:
                return real(*args, **named)
            self.struck += 1
            if after:
                real(*args, **named)
            raise ZeroDivisionError("a fault of ours")

        self._monkeypatch.setattr(owner, name, faulty)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


def streaming(*texts: str) -> Callable[[Recorded], list[Step]]:
    return lambda request: [*sse_head(), *events(*texts, gap_s=0.005), *sse_end((5, 2))]


def one_at_a_time() -> GatewayRules:
    return GatewayRules(limits=LimitsConfig(max_concurrent_requests=1, queue_size=4))


async def told(gateway: SmallGateway, *, stream: bool) -> Answer:
    """What the client gets, in time."""
    async with asyncio.timeout(2), RawClient(gateway.port) as client:
        client.send(request(CHAT, chat_body(stream=stream)))
        return await client.answer()


async def check_nothing_is_kept(
    gateway: SmallGateway, worker: ScriptedWorker, faults: Faults, logged: list[str]
) -> None:
    """The place, the lease and the counts are free, and the next request is answered."""
    assert faults.struck == 1, "the fault did not strike"
    assert {"a request failed", "an attempt failed"} & {*logged}
    assert set(faults.closed.values()) <= {1}
    metrics = gateway.gateway.metrics
    await until(lambda: gateway.in_flight() == 0)
    assert (metrics.in_flight, sum(metrics.requests.values())) == (0, 1)
    assert len(gateway.gateway.headquarters.path.held) == 0
    worker.script = good_answer
    async with asyncio.timeout(2):
        assert (await gateway.chat()).status == 200
    assert metrics.in_flight == 0


BEFORE_A_BYTE = [
    pytest.param(False, WorkerChoice, "lease", id="a-worker-is-chosen"),
    pytest.param(False, HttpAttempt, "send", id="it-is-sent"),
    pytest.param(False, Lease, "first_output", id="a-whole-answer-has-come"),
    pytest.param(False, WorkerChoice, "ended", id="its-attempt-ends"),
    pytest.param(True, ClientAnswer, "hold", id="a-head-comes"),
    pytest.param(True, ClientAnswer, "add", id="the-first-piece-comes"),
    pytest.param(True, HeldAnswer, "send", id="it-begins-to-go-out"),
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
    pytest.param(ClientAnswer, "add", 2, False, id="a-later-piece-comes"),
    pytest.param(FrontConnection, "on_body", 2, True, id="an-event-goes-out"),
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
        async with asyncio.timeout(2), RawClient(gateway.port) as client:
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


async def test_a_silence_whose_working_off_fails_is_told(
    faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time(), request_timeout_secs=0.05) as gateway,
    ):
        worker.script = lambda request: [Hang()]
        faults.strike(HttpAttempt, "cancel")
        reply = await told(gateway, stream=False)
        assert (reply.status, reply.json["error"]["message"]) == (500, INTERNAL)
        await check_nothing_is_kept(gateway, worker, faults, messages(caplog))


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(HttpAttempt, "delivered", id="what-has-come-cannot-be-told"),
        pytest.param(UpstreamConnection, "abort", id="the-worker-cannot-be-told"),
        pytest.param(ClientAnswer, "leave", id="it-cannot-be-counted"),
    ],
)
async def test_a_client_that_leaves_leaves_nothing_behind(
    faults: Faults, caplog: pytest.LogCaptureFixture, owner: type, name: str
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time()) as gateway,
    ):
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(stream=True)))
            await until(lambda: len(worker.requests) == 1 and gateway.in_flight() == 1)
            faults.strike(owner, name)
        await until(lambda: gateway.in_flight() == 0)
        worker.script = good_answer
        async with asyncio.timeout(2):
            assert (await gateway.chat()).status == 200
        assert gateway.gateway.metrics.in_flight == 0


async def test_an_order_to_end_that_fails_ends_it_all_the_same(
    faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time(), retry_initial_backoff_ms=5_000.0) as gateway,
    ):
        worker.script = lambda request: [Reset()]
        async with asyncio.timeout(2), RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(rid="r1")))
            await until(lambda: len(gateway.gateway.headquarters.path.held) == 1)
            faults.strike(Exchange, "_end_aborted")
            await gateway.post("/abort_request", {"rid": "r1"})
            reply = await client.answer()
            assert (reply.status, reply.json["error"]["message"]) == (500, INTERNAL)
        await check_nothing_is_kept(gateway, worker, faults, messages(caplog))


def test_one_deadline_that_fails_keeps_no_other_from_being_told() -> None:
    class Late:
        deadline = 0.0

        def __init__(self, *, fails: bool) -> None:
            self.fails, self.told = fails, 0

        def on_deadline(self) -> None:
            self.told += 1
            if self.fails:
                raise ZeroDivisionError
            self.deadline = NEVER

    deadlines = Deadlines(FakeClock())
    watched = [Late(fails=index % 2 == 0) for index in range(8)]
    for one in watched:
        deadlines.watch(one)
    deadlines.sweep()
    assert [one.told for one in watched] == [1] * 8
    deadlines.sweep()
    assert [one.told for one in watched] == [1] * 8, "what failed is watched no more"


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_cannot_be_read_is_an_error(
    faults: Faults, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time()) as gateway,
    ):
        if stream:
            worker.script = streaming("a")
            faults.strike(StreamedAnswer, "is_whole")
        else:
            worker.script = lambda request: chat_answer()
            with monkeypatch.context() as patched:
                patched.setattr(worker_http, "counts_of", lambda body: 1 / 0)
                reply = await told(gateway, stream=False)
            assert (reply.status, reply.json["error"]["message"]) == (500, INTERNAL)
        if stream:
            reply = await told(gateway, stream=True)
            assert reply.events[-1] == b"[DONE]"
            assert json.loads(reply.events[-2])["error"]["message"] == INTERNAL
        assert (gateway.in_flight(), gateway.gateway.metrics.in_flight) == (0, 0)
        async with asyncio.timeout(2):
            assert (await gateway.chat()).status == 200


async def test_requests_that_cannot_be_begun_keep_no_place(faults: Faults) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time()) as gateway,
    ):
        faults.strike(Forwarder, "generate")
        faults_in_line = await asyncio.gather(*(gateway.chat(str(n)) for n in range(4)))
        assert sorted(reply.status for reply in faults_in_line) == [200, 200, 200, 500]
        faults.strike(Forwarder, "generate", call=2)
        in_line = await asyncio.gather(*(gateway.chat(str(n)) for n in range(4)))
        assert sorted(reply.status for reply in in_line) == [200, 200, 200, 500]
        assert sum(gateway.gateway.metrics.requests.values()) == 8
