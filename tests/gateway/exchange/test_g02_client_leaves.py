"""G02: a client that leaves frees its worker at once, whatever has been sent so far."""

import asyncio
from collections.abc import Sequence

import pytest

from front_door import connections_of
from radixgate.gateway.observe.metrics import FinalOutcome
from raw_client import RawClient, request
from scripted_worker import Hang, ScriptedWorker, Step, events, sse_head
from small_gateway import CHAT, chat_body, small_gateway
from until import until
from virtual_time import LoopClock, in_virtual_time

VARIANTS = [
    pytest.param([Hang()], True, id="a-before-headers"),
    pytest.param([*sse_head(), Hang()], True, id="b-before-the-first-event"),
    pytest.param([*sse_head(), *events("a"), Hang()], True, id="c-after-the-first-event"),
    pytest.param([Hang()], False, id="d-not-streamed"),
]


@pytest.mark.parametrize(("script", "stream"), VARIANTS)
@in_virtual_time
async def test_g02_the_worker_is_told_within_a_second(script: Sequence[Step], stream: bool) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], clock=LoopClock()) as gateway:
        worker.script = lambda request: script
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(stream=stream)))
            await until(lambda: len(worker.requests) == 1)
            await asyncio.sleep(0.02)  # what the script says before it hangs is under way
            assert gateway.in_flight() == 1
        left_at = LoopClock().now()
        connection = worker.requests[0].connection
        await until(lambda: connection.closed_at is not None)
        assert LoopClock().now() - left_at < 1.0
        assert gateway.in_flight() == 0
        name = "radixgate_requests_total"
        assert await gateway.counter(name, outcome="client_disconnect") == 1
        assert await gateway.counter(name, outcome="upstream_error") == 0
        assert await gateway.counter("radixgate_in_flight") == 0
        worker_id = f"127.0.0.1:{worker.port}"
        assert await gateway.counter("radixgate_worker_failures_total", worker=worker_id) == 0


async def test_g02_a_client_that_leaves_between_attempts_is_not_tried_for_again() -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], retry_initial_backoff_ms=100.0) as gateway,
    ):
        await worker.stop()
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body()))
            await until(lambda: gateway.gateway.metrics.retries == 1)
        await until(lambda: gateway.gateway.metrics.in_flight == 0)
        # Nothing waits for another attempt any more.
        assert len(gateway.gateway.headquarters.path.held) == 0
        assert gateway.gateway.metrics.attempts == 1


async def test_g02_a_client_that_leaves_in_the_turn_of_its_request_is_not_tried_for() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        async with RawClient(gateway.port):
            door = gateway.gateway.door
            assert door is not None
            await until(lambda: len(door.front.connections) == 1)
            (connection,) = connections_of(door.front)
            # As the loop calls it, all in one turn.
            connection.data_received(request(CHAT, chat_body()))
            connection.eof_received()
        metrics = gateway.gateway.metrics
        await until(lambda: metrics.requests[FinalOutcome.CLIENT_DISCONNECT] == 1)
        assert (metrics.attempts, metrics.in_flight) == (0, 0)
        assert worker.requests == []
