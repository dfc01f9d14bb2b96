"""G14: a stale connection is no failure, and a dead worker is not asked twice while others live."""

import pytest

from radixgate.policies.cache_aware import CacheAwareConfig
from scripted_worker import Recorded, Reset, ScriptedWorker, Step, chat_answer, json_answer
from small_gateway import small_gateway
from virtual_time import LoopClock, in_virtual_time

LONG = "a prompt long enough to be worth a few blocks of bytes " * 20


async def test_g14_a_connection_that_was_closed_meanwhile_costs_the_client_nothing() -> None:
    executed = 0

    def first_of_each_connection(request: Recorded) -> list[Step]:
        nonlocal executed
        if request.connection.served > 1:
            return [Reset()]
        executed += 1
        return chat_answer()

    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], health_check_interval_secs=60.0) as gateway,
    ):
        # The probes' connection is out of the way: each POST meets the rule by itself.
        worker.script = first_of_each_connection
        for connection in worker.connections:
            connection.served = 1
        replies = [await gateway.chat() for _ in range(20)]
        assert {reply.status for reply in replies} == {200}
        assert executed == 20
        metrics = gateway.gateway.metrics
        assert (metrics.attempts, metrics.retries, metrics.worker_failures) == (20, 0, {})


async def test_g14_a_dead_worker_with_the_best_cache_is_asked_once() -> None:
    workers = [await ScriptedWorker().start() for _ in range(3)]
    async with small_gateway(
        workers, policy="cache_aware", health_check_interval_secs=60.0
    ) as gateway:
        first = (await gateway.chat(LONG)).header("x-radixgate-worker")
        assert (await gateway.chat(LONG)).header("x-radixgate-worker") == first
        (warm,) = [one for one in workers if first == f"127.0.0.1:{one.port}"]
        await warm.stop()
        reply = await gateway.chat(LONG)
        second = reply.header("x-radixgate-worker")
        assert (reply.status, second != first) == (200, True)
        assert gateway.gateway.metrics.attempts == 4
        assert (await gateway.chat(LONG)).header("x-radixgate-worker") == second
    for worker in workers:
        await worker.stop()


@in_virtual_time
async def test_g14_when_all_refuse_each_is_tried_once_and_one_error_comes() -> None:
    workers = [await ScriptedWorker().start() for _ in range(3)]
    async with small_gateway(
        workers,
        clock=LoopClock(),
        health_check_interval_secs=60.0,
        retry_initial_backoff_ms=20.0,
    ) as gateway:
        for worker in workers:
            await worker.stop()
        began = LoopClock().now()
        reply = await gateway.chat()
        took = LoopClock().now() - began
        assert reply.status in (502, 503)
        assert reply.header("retry-after") == "1"
        assert reply.json["error"]["type"] in ("upstream_error", "service_unavailable")
        assert gateway.gateway.metrics.worker_failures == {
            f"127.0.0.1:{worker.port}": 1 for worker in workers
        }
        # A wait after each of the first two, the second twice the first, each within a fifth.
        assert 0.8 * (0.020 + 0.040) <= took <= 1.2 * (0.020 + 0.040)
        assert gateway.in_flight() == 0


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_worker_that_is_busy_or_broken_is_passed_over(status: int) -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other]) as gateway,
    ):
        worker.script = lambda request: json_answer({"error": {"message": "no"}}, status)
        reply = await gateway.chat_first_at(worker)
        assert reply.status == 200
        assert reply.header("x-radixgate-worker") == f"127.0.0.1:{other.port}"


async def test_when_no_worker_does_better_the_last_answer_passes_through() -> None:
    body = {"error": {"message": "overloaded"}, "own": 1}
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: json_answer(body, 503)
        reply = await gateway.chat()
        assert (reply.status, reply.json) == (503, body)
        assert len(worker.requests) == 3
        assert await gateway.counter("radixgate_requests_total", outcome="upstream_error") == 1
        assert await gateway.counter("radixgate_attempts_total") == 3


async def test_no_retries_means_one_attempt() -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], retry_max_retries=0) as gateway,
    ):
        worker.script = lambda request: [Reset()]
        reply = await gateway.chat()
        assert (reply.status, reply.json["error"]["type"]) == (502, "upstream_error")
        assert len(worker.requests) == 1


async def test_m02_a_retried_prompt_is_remembered_where_it_was_answered() -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway(
            [worker, other],
            policy="cache_aware",
            cache_aware=CacheAwareConfig(cache_threshold=0.3),
        ) as gateway,
    ):
        worker.script = lambda request: json_answer({}, 503)
        for number in range(16):
            text = f"{number} {LONG}"
            assert (await gateway.chat(text)).status == 200
            before = len(worker.requests)
            assert (await gateway.chat(text + LONG)).header(
                "x-radixgate-worker"
            ) == f"127.0.0.1:{other.port}"
            assert len(worker.requests) == before
        assert worker.requests


async def test_a_fault_of_ours_is_a_500_and_leaves_nothing_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:

        def broken(ask: object, exclude: object = ()) -> None:
            raise ZeroDivisionError

        gateway.gateway.fleet.lease = broken  # type: ignore[method-assign,assignment]
        reply = await gateway.chat()
        assert (reply.status, reply.json["error"]["type"]) == (500, "internal_error")
        assert gateway.gateway.metrics.in_flight == 0
    assert any(record.exc_info for record in caplog.records)
