"""To find whom an order means, bodies are read once, and not all in one turn of the loop."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from radixgate.gateway.attempt.abort_order import TURN_BYTES, AbortOrder, rid_of
from radixgate.gateway.exchange import held_requests
from radixgate.gateway.exchange.held_requests import HeldRequests
from radixgate.gateway.workers import http_attempt
from raw_client import RawClient, request
from scripted_worker import Await, ScriptedWorker, json_answer
from small_gateway import CHAT, chat_body, small_gateway
from until import until

BODY_BYTES = 700_000  # two of them are more than a turn's
TWO = 2


class Holder:
    def __init__(self, rid: str) -> None:
        self.body = json.dumps({"text": "x" * BODY_BYTES, "rid": rid}).encode()
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


@asynccontextmanager
async def turns_of_reads(
    monkeypatch: pytest.MonkeyPatch, module: object
) -> AsyncIterator[Callable[[], list[int]]]:
    """How many bodies `module` has read in each turn of the loop in which it read any."""
    turn, reads = 0, Counter[int]()

    async def count() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    def reading(body: bytes) -> object:
        reads[turn] += 1
        return rid_of(body)

    monkeypatch.setattr(module, "rid_of", reading)
    counting = asyncio.create_task(count())
    yield lambda: list(reads.values())
    counting.cancel()


async def test_what_is_held_is_read_a_megabyte_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    held, holders = HeldRequests(), [Holder(f"r{n}") for n in range(5)]
    for holder in holders:
        held.enter(holder)
    assert BODY_BYTES < TURN_BYTES < TWO * BODY_BYTES
    async with turns_of_reads(monkeypatch, held_requests) as reads:
        await held.read_rids()
        assert reads() == [2, 2, 1]
        await held.read_rids()
        assert held.abort(AbortOrder("r3")) == 1
        assert sum(reads()) == len(holders), "each once"
    assert [one.aborted for one in holders] == [False, False, False, True, False]
    assert len(held) == len(holders) - 1


async def test_what_comes_while_the_others_are_read_is_meant_and_what_leaves_is_not() -> None:
    held, holders = HeldRequests(), [Holder("mine") for _ in range(5)]
    for holder in holders[:4]:
        held.enter(holder)
    reading = asyncio.create_task(held.read_rids())
    await asyncio.sleep(0)  # two are read
    held.leave(holders[3])
    held.enter(holders[4])
    await reading
    assert held.abort(AbortOrder("mine")) == 4
    assert [one.aborted for one in holders] == [True, True, True, False, True]


async def test_everything_is_ended_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    held, holder = HeldRequests(), Holder("mine")
    held.enter(holder)
    async with turns_of_reads(monkeypatch, held_requests) as reads:
        assert held.abort(AbortOrder(None)) == 1
        assert reads() == []


async def test_what_runs_is_read_a_megabyte_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        end = asyncio.Event()
        worker.admin["/abort_request"] = lambda _: json_answer({})
        worker.script = lambda _: [Await(end), *json_answer({})]
        clients = [await RawClient(gateway.port).__aenter__() for _ in range(5)]
        for number, client in enumerate(clients):
            content = [{"role": "user", "content": "x" * BODY_BYTES}]
            client.send(request(CHAT, chat_body(messages=content, rid=f"r{number}")))
        await until(lambda: len(worker.requests) == len(clients))
        async with turns_of_reads(monkeypatch, http_attempt) as reads:
            reply = await gateway.post("/abort_request", {"rid": "r3"})
            assert list(reply.json["workers"]) == [worker.url[7:]]
            assert max(reads()) <= TWO
            assert sum(reads()) == len(clients)
        end.set()
        for client in clients:
            assert (await client.answer()).status == 200
            client.close()
