"""Faults of ours where a client leaves, an order ends it, or somebody is told of it."""

import asyncio
import json

import pytest

from clocks import FakeClock
from own_faults import (
    INTERNAL,
    Faults,
    check_nothing_is_kept,
    messages,
    one_at_a_time,
    streaming,
    told,
)
from radixgate.gateway.attempt.request_ids import RequestIds
from radixgate.gateway.entry.http_front import FrontConnection
from radixgate.gateway.exchange.client_answer import ClientAnswer
from radixgate.gateway.exchange.exchange import Exchange
from radixgate.gateway.loop.deadlines import NEVER, Deadlines
from radixgate.gateway.observe.metrics import FinalOutcome
from radixgate.gateway.observe.story import Story
from radixgate.gateway.upstream.connection import UpstreamConnection
from radixgate.gateway.workers import http_attempt
from radixgate.gateway.workers.answer_reading import StreamedAnswer
from radixgate.gateway.workers.http_attempt import HttpAttempt
from raw_client import RawClient, request
from scripted_worker import (
    Hang,
    Reset,
    ScriptedWorker,
    chat_answer,
    events,
    good_answer,
    sse_head,
)
from small_gateway import CHAT, chat_body, small_gateway
from told_gateway import Kept, told_gateway
from until import PATIENCE_S, until


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


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
        async with asyncio.timeout(PATIENCE_S):
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
        async with asyncio.timeout(PATIENCE_S), RawClient(gateway.port) as client:
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
                patched.setattr(http_attempt, "counts_of", lambda body: 1 / 0)
                reply = await told(gateway, stream=False)
            assert (reply.status, reply.json["error"]["message"]) == (500, INTERNAL)
        if stream:
            reply = await told(gateway, stream=True)
            assert reply.events[-1] == b"[DONE]"
            assert json.loads(reply.events[-2])["error"]["message"] == INTERNAL
        assert (gateway.in_flight(), gateway.gateway.metrics.in_flight) == (0, 0)
        async with asyncio.timeout(PATIENCE_S):
            assert (await gateway.chat()).status == 200


async def test_requests_that_cannot_be_begun_keep_no_place(faults: Faults) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time()) as gateway,
    ):
        faults.strike(RequestIds, "make")
        faults_in_line = await asyncio.gather(*(gateway.chat(str(n)) for n in range(4)))
        assert sorted(reply.status for reply in faults_in_line) == [200, 200, 200, 500]
        faults.strike(RequestIds, "make", call=2)
        in_line = await asyncio.gather(*(gateway.chat(str(n)) for n in range(4)))
        assert sorted(reply.status for reply in in_line) == [200, 200, 200, 500]
        assert sum(gateway.gateway.metrics.requests.values()) == 8


class Raising:
    """A `Teller` that cannot tell."""

    def tell(self, story: Story) -> None:
        raise ZeroDivisionError("a fault of ours")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_story_that_cannot_be_told_costs_the_client_nothing(stream: bool) -> None:
    kept = Kept()
    async with (
        ScriptedWorker() as worker,
        told_gateway([worker], tellers=[Raising(), kept]) as gateway,
    ):
        reply = await told(gateway, stream=stream)
        assert (reply.status, reply.cut) == (200, False)
        assert [story.outcome for story in kept.stories] == [FinalOutcome.OK]


async def test_an_end_that_fails_is_told_of_once(faults: Faults) -> None:
    kept = Kept()
    async with ScriptedWorker() as worker, told_gateway([worker], tellers=[kept]) as gateway:
        worker.script = streaming("a", "b")
        faults.strike(FrontConnection, "on_end")
        assert (await told(gateway, stream=True)).cut
        await until(lambda: gateway.gateway.metrics.in_flight == 0)
        assert len(kept.stories) == 1
