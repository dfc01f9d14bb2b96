"""Breakers, busy workers and passive health over a whole gateway."""

import asyncio

import pytest

from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.choice.breakers import MOST_PROBES
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.rules import GatewayRules
from scripted_worker import (
    Await,
    Hang,
    Reset,
    ScriptedWorker,
    Step,
    answer,
    chat_answer,
    events,
    good_answer,
    json_answer,
    sse_end,
    sse_head,
)
from small_gateway import SmallGateway, small_gateway
from until import until
from virtual_time import LoopClock, in_virtual_time


def breaking(after: int = 3, secs: float = 60.0) -> GatewayRules:
    config = ReliabilityConfig(cb_failure_threshold=after, cb_timeout_duration_secs=secs)
    return GatewayRules(reliability=config)


async def state(gateway: SmallGateway, worker: ScriptedWorker) -> str:
    name = f"127.0.0.1:{worker.port}"
    return str((await gateway.get(f"/workers/{name}")).json["breaker"])


def busy(retry_after: str | None = None) -> list[Step]:
    headers = [("content-type", "application/json")]
    if retry_after is not None:
        headers.append(("retry-after", retry_after))
    return answer(b"{}", 503, headers)


@pytest.mark.parametrize("status", [400, 404, 422, 429, 503])
async def test_errors_of_the_client_and_busy_workers_do_not_open_the_breaker(status: int) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=breaking(), retry_max_retries=0) as gateway,
    ):
        worker.script = lambda request: json_answer({}, status)
        for _ in range(8):
            assert (await gateway.chat()).status == status
        assert await state(gateway, worker) == "closed"
        worker.script = good_answer
        assert (await gateway.chat()).status == 200


async def test_a_failing_worker_is_left_alone_and_the_others_serve() -> None:
    async with (
        ScriptedWorker() as bad,
        ScriptedWorker() as good,
        small_gateway([bad, good], rules=breaking()) as gateway,
    ):
        bad.script = lambda request: json_answer({}, 500)
        for _ in range(12):
            assert (await gateway.chat()).status == 200
        assert len(bad.requests) == 3
        assert await state(gateway, bad) == "open"
        labels = {"worker": f"127.0.0.1:{bad.port}", "state": "open"}
        assert await gateway.counter("radixgate_worker_breaker", **labels) == 1


async def test_with_every_breaker_open_it_is_503_with_the_time_to_retry() -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=breaking(), retry_max_retries=0) as gateway,
    ):
        worker.script = lambda request: [Reset()]
        for _ in range(3):
            assert (await gateway.chat()).status == 502
        reply = await gateway.chat()
        assert (reply.status, reply.header("retry-after")) == (503, "1")
        assert len(worker.requests) == 3


async def test_half_open_it_gets_three_probes_at_once_and_then_everything() -> None:
    word = asyncio.Event()
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=breaking(secs=0.2), retry_max_retries=0) as gateway,
    ):
        worker.script = lambda request: json_answer({}, 500)
        for _ in range(3):
            await gateway.chat()
        await until(lambda: gateway.gateway.choice.breaker_of(f"127.0.0.1:{worker.port}") != "open")
        worker.requests.clear()
        worker.script = lambda request: [*sse_head(), Await(word), *events("a"), *sse_end()]
        asking = [asyncio.create_task(gateway.chat(stream=True)) for _ in range(8)]
        await until(lambda: sum(one.done() for one in asking) == 5)
        word.set()
        replies = await asyncio.gather(*asking)
        assert sorted(reply.status for reply in replies) == [200] * 3 + [503] * 5
        assert len(worker.requests) == MOST_PROBES
        assert await state(gateway, worker) == "closed"


@in_virtual_time
async def test_a_worker_that_asks_for_a_pause_gets_it_while_others_serve() -> None:
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other], clock=LoopClock()) as gateway,
    ):
        worker.script = lambda request: busy("20")
        began = LoopClock().now()
        for _ in range(8):
            assert (await gateway.chat()).status == 200
        assert len(worker.requests) == 1
        assert LoopClock().now() - began < 1.0


@pytest.mark.slow
async def test_the_only_worker_is_asked_again_after_the_time_it_gave() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: busy("1") if len(worker.requests) == 1 else chat_answer()
        assert (await gateway.chat()).status == 200
        first, second = worker.requests
        assert second.arrived_at - first.arrived_at >= 0.95


async def test_a_longer_pause_than_we_wait_passes_to_the_client() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: busy("20")
        reply = await gateway.chat()
        assert (reply.status, reply.header("retry-after")) == (503, "20")
        assert len(worker.requests) == 1


async def test_when_the_retry_budget_is_spent_the_first_answer_is_the_last() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: json_answer({}, 500)
        gateway.gateway.metrics.retries = 100
        assert (await gateway.chat()).status == 500
        assert len(worker.requests) == 1


@pytest.mark.slow
@in_virtual_time
async def test_a_worker_that_streams_is_alive_though_its_health_check_hangs() -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway(
            [worker],
            clock=LoopClock(),
            health_check_timeout_secs=0.05,
            health_failure_threshold=1,
        ) as gateway,
    ):
        texts = [str(at) for at in range(60)]
        worker.script = lambda request: [*sse_head(), *events(*texts, gap_s=0.01), *sse_end()]
        worker.admin["/health"] = lambda request: [Hang()]
        streaming = asyncio.create_task(gateway.chat(stream=True))
        while not streaming.done():
            if len(worker.requests):
                assert gateway.state_of(worker) is WorkerState.READY
            await asyncio.sleep(0.01)
        assert len(streaming.result().events) == 62
        await until(lambda: gateway.state_of(worker) is WorkerState.DOWN)


async def test_a_returned_worker_starts_slowly_and_with_a_closed_breaker() -> None:
    slow = GatewayRules(reliability=ReliabilityConfig(cb_failure_threshold=1, slow_start_secs=60))
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker() as other,
        small_gateway([worker, other], rules=slow) as gateway,
    ):
        await gateway.chat()
        await gateway.chat()
        assert len(worker.requests) == len(other.requests) == 1
        await worker.stop()
        await until(lambda: gateway.state_of(worker) is WorkerState.DOWN)
        await worker.start()
        await gateway.ready(2)
        assert await state(gateway, worker) == "closed"
        for _ in range(10):
            assert (await gateway.chat()).status == 200
        assert len(worker.requests) <= 3
