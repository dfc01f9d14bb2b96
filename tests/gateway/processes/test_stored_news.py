"""What a process of several tells and asks its parent of stored responses."""

import asyncio
from typing import cast

import pytest

from radixgate.gateway.asking.stored_responses import StoredResponse, StoredResponses
from radixgate.gateway.exchange.first_step import begun
from radixgate.gateway.processes import stored_news
from radixgate.gateway.processes.channel import Channel
from radixgate.gateway.processes.messages import (
    AllStored,
    AskStored,
    ResponsesStored,
    Seen,
    TellAll,
    ToChild,
)
from radixgate.gateway.processes.stored_news import StoredNews
from small_crew import crew_of
from until import until


class Parent:
    """What a child sends."""

    def __init__(self) -> None:
        self.flows = True
        self.said: list[object] = []
        self.asked = asyncio.Event()

    def send(self, message: object) -> None:
        self.said.append(message)
        self.asked.set()


def child_of(parent: Parent) -> tuple[StoredResponses, StoredNews]:
    stored = StoredResponses()
    return stored, StoredNews(stored, cast("Channel[ToChild]", parent))


async def test_a_process_asks_its_parent_of_what_it_does_not_know() -> None:
    parent = Parent()
    stored, news = child_of(parent)
    assert stored.may_come("r")
    assert stored.catch_up is not None
    asking = asyncio.ensure_future(stored.catch_up())
    await parent.asked.wait()
    assert parent.said == [AskStored(1)]
    news.hear(ResponsesStored([StoredResponse("r", "w", None)]))
    assert not asking.done()
    news.hear(AllStored(1))
    await asking
    assert not stored.may_come("r")
    news.hear(AllStored(1))  # late, or twice: nobody waits


async def test_a_request_may_ask_in_its_first_step() -> None:
    """Which is taken in no task (`first_step`)."""
    parent = Parent()
    stored, news = child_of(parent)

    async def ask() -> None:
        assert stored.catch_up is not None
        await stored.catch_up()

    asking = begun(ask())
    assert asking is not None
    assert parent.said == [AskStored(1)]
    news.hear(AllStored(1))
    await asking


async def test_a_parent_that_does_not_answer_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored_news, "CATCH_UP_S", 0.001)
    stored, _ = child_of(Parent())
    assert stored.catch_up is not None
    await stored.catch_up()


def test_a_parent_that_is_behind_is_told_nothing() -> None:
    parent = Parent()
    stored, _ = child_of(parent)
    stored.keep("r1", "w", None)
    parent.flows = False
    stored.keep("r2", "w", None)
    assert parent.said == [ResponsesStored([StoredResponse("r1", "w", None)])]


async def test_what_another_has_stored_comes_before_the_answer_however_late_it_is_told() -> None:
    _, (one, other) = crew_of(2)
    other.says(AskStored(7))
    await until(lambda: TellAll(1) in one.told)
    other.says(Seen(1))
    await asyncio.sleep(0)
    assert AllStored(7) not in other.told, "the one that has it has not been heard"
    stored = ResponsesStored([StoredResponse("r", "w", None)])
    one.says(stored)
    one.says(Seen(1))
    await until(lambda: AllStored(7) in other.told)
    assert other.told == [TellAll(1), stored, AllStored(7)]


async def test_a_process_that_has_ended_is_not_waited_for() -> None:
    crew, (one, other) = crew_of(2)
    other.says(AskStored(7))
    await until(lambda: TellAll(1) in one.told)
    other.says(Seen(1))
    crew.lost(one.channel)
    await until(lambda: AllStored(7) in other.told)
