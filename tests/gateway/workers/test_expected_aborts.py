"""What a worker ends because it was told to end everything is not its fault, whoever told it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from gateway_processes import processes
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.workers.expected_aborts import ExpectedAborts, Meant
from raw_client import Answer, RawClient, request
from scripted_worker import Await, Reset, ScriptedWorker, Step, events, json_answer, sse_head
from small_gateway import CHAT, chat_body, small_gateway
from until import until

ALL = AbortOrder(None)
STREAMS = 16  # of two processes one has none of them in 1 of 32,768 runs


@dataclass(eq=False)
class Request:
    rid: str
    orders: int = 0

    def is_meant_by(self, order: AbortOrder) -> bool:
        return order.names(self.rid)


@pytest.mark.parametrize(("taken", "orders"), [(True, 1), (False, 0)])
def test_those_that_run_and_those_that_begin_meanwhile_are_marked_until_it_is_refused(
    taken: bool, orders: int
) -> None:
    ran, began, late, other = Request("a"), Request("a"), Request("a"), Request("b")
    running: set[Meant] = {ran, other}
    expected = ExpectedAborts(running)
    over = expected.expect(AbortOrder("a"))
    expected.begun(began)
    assert [one.orders for one in (ran, began, other)] == [1, 1, 0]
    over(taken)
    assert not expected.standing
    expected.begun(late)
    assert [one.orders for one in (ran, began, late, other)] == [orders, orders, 0, 0]


def test_an_order_that_is_refused_takes_back_no_other() -> None:
    one = Request("a")
    expected = ExpectedAborts({one})
    refused, taken = expected.expect(ALL), expected.expect(ALL)
    refused(False)
    taken(True)
    assert one.orders == 1


async def streams(port: int, worker: ScriptedWorker, count: int) -> list[RawClient]:
    """So many, of which each has had its first text."""
    clients = [await RawClient(port).__aenter__() for _ in range(count)]
    for number, client in enumerate(clients):
        client.send(request(CHAT, chat_body(stream=True, rid=f"r{number}")))
    await until(lambda: len(worker.requests) == count)
    for client in clients:
        await client.reader.readuntil(b"\r\n\r\n")
    return clients


async def rest(client: RawClient) -> bytes:
    return (await client.reader.readuntil(b"[DONE]")).rsplit(b"data: ", 2)[-2]


async def test_a_request_that_begins_while_everything_is_ended_ends_with_it() -> None:
    rules = GatewayRules(reliability=ReliabilityConfig(cb_failure_threshold=1))
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        ordered, end = asyncio.Event(), asyncio.Event()

        def take(_: object) -> Sequence[Step]:
            ordered.set()
            return [Await(end), *json_answer({})]

        worker.admin["/abort_request"] = take
        worker.script = lambda _: [*sse_head(), *events("a"), Await(end), Reset()]
        order = asyncio.create_task(gateway.post("/abort_request", {"abort_all": True}))
        await ordered.wait()
        (client,) = await streams(gateway.port, worker, 1)
        end.set()
        assert b'"finish_reason":"abort"' in await rest(client)
        client.close()
        answer: Answer = await order
        assert answer.status == 200
        name = f"127.0.0.1:{worker.port}"
        assert (await gateway.get(f"/workers/{name}")).json["breaker"] == "closed"


@pytest.mark.slow
async def test_what_another_process_s_order_ends_is_no_failure_here() -> None:
    """The worker breaks off all that it has as the first order comes, before it is answered."""
    async with ScriptedWorker() as worker, processes("--worker-urls", worker.url) as served:
        await served.ready(1)
        end = asyncio.Event()

        def take(_: object) -> Sequence[Step]:
            end.set()
            return json_answer({})

        worker.admin["/abort_request"] = take
        worker.script = lambda _: [*sse_head(), *events("a"), Await(end), Reset()]
        clients = await streams(served.port, worker, STREAMS)
        answer = await served.post("/abort_request", {"abort_all": True})
        assert answer.status == 200
        ends = [await rest(client) for client in clients]
        assert [b'"finish_reason":"abort"' in one for one in ends] == [True] * STREAMS
        for client in clients:
            client.close()
        assert await served.metric('radixgate_requests_total{outcome="ok"}') == STREAMS
