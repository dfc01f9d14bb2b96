"""An order to abort is given when every process knows of it, and not before."""

import asyncio

import pytest

from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.processes.messages import (
    AbortOver,
    Admitted,
    AskAbort,
    ExpectAbort,
    PeerGone,
    WorkerResult,
)
from small_crew import crew_of
from until import until


async def test_all_expect_it_before_one_gives_it_and_until_all_have() -> None:
    crew, (one, other) = crew_of(2)
    order = asyncio.create_task(crew.abort(AbortOrder(None)))
    await until(lambda: bool(other.told))
    expect = ExpectAbort(1, 1, None, False)
    assert (one.told, other.told) == ([expect], [expect])
    one.answers(held=3)
    await asyncio.sleep(0)
    assert (len(one.told), len(other.told)) == (1, 1), "the other has not marked what it runs"
    other.answers(held=1)
    await until(lambda: len(other.told) == 2)
    ask = AskAbort(2, None, False)
    assert (one.told[1:], other.told[1:]) == ([ask], [ask])
    said = WorkerResult("w", True, "", None)
    one.answers(results=[said])
    other.answers()
    which, answers = await order
    assert sum(answer.held for answer in answers) == 4
    assert [answer.results for answer in answers if answer.results] == [[said]]
    crew.abort_over(which, ["w"])
    assert (one.told[2:], other.told[2:]) == ([AbortOver(1, ["w"])],) * 2


async def test_one_that_ends_meanwhile_is_not_waited_for() -> None:
    crew, (one, other) = crew_of(2)
    order = asyncio.create_task(crew.abort(AbortOrder("mine", prefix=True)))
    await until(lambda: bool(one.told))
    one.answers()
    crew.lost(other.channel)
    await until(lambda: isinstance(one.told[-1], AskAbort))
    assert PeerGone(1) in one.told
    one.answers()
    which, answers = await order
    assert (which, len(answers)) == (1, 2)


@pytest.mark.parametrize(("given", "taken"), [(False, []), (True, ["w"])])
async def test_one_whose_asker_leaves_is_over(given: bool, taken: list[str]) -> None:
    """`given`: it has gone out, and nobody knows whether the worker took it."""
    crew, (one,) = crew_of(1)
    one.says(Admitted("w", 1))
    order = asyncio.create_task(crew.abort(AbortOrder(None)))
    await until(lambda: bool(one.told))
    if given:
        one.answers()
        await until(lambda: isinstance(one.told[-1], AskAbort))
    order.cancel()
    with pytest.raises(asyncio.CancelledError):
        await order
    assert one.told[-1] == AbortOver(1, taken)
