"""A child's marks for an order to abort stand until it is over, and never longer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import pytest

from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.exchange.held_requests import HeldRequests
from radixgate.gateway.processes.abort_marks import AbortMarks
from radixgate.gateway.processes.messages import Aborted, ExpectAbort
from radixgate.gateway.workers.expected_aborts import ExpectedAborts
from radixgate.gateway.workers.roster import Roster
from until import until


@dataclass(frozen=True)
class Address:
    id: str


class Worker:
    """One member, its handle and its roster in one."""

    def __init__(self) -> None:
        self.address, self.handle = Address("w"), self
        self.expected = ExpectedAborts([])
        self.read = asyncio.Event()

    def members(self) -> "list[Worker]":
        return [self]

    async def read_rids(self) -> None:
        await self.read.wait()

    def expect_abort(self, order: AbortOrder) -> Callable[[bool], None]:
        return self.expected.expect(order)


def marks_at(worker: Worker) -> tuple[AbortMarks, list[Aborted]]:
    said: list[Aborted] = []
    return AbortMarks(cast(Roster, worker), HeldRequests(), said.append), said


async def test_one_for_everything_is_marked_as_it_is_heard() -> None:
    worker = Worker()
    marks, said = marks_at(worker)
    marks.expect(ExpectAbort(5, 1, None, False))
    assert (len(worker.expected.standing), said) == (1, [Aborted(5, 0, [])])
    marks.over(1, ["w"])
    assert not worker.expected.standing


async def test_one_that_names_is_marked_when_the_bodies_are_read() -> None:
    worker = Worker()
    marks, said = marks_at(worker)
    marks.expect(ExpectAbort(5, 1, "mine", False))
    assert not said
    worker.read.set()
    await until(lambda: bool(said))
    assert (len(worker.expected.standing), said) == (1, [Aborted(5, 0, [])])
    marks.over(1, [])
    assert not worker.expected.standing


@pytest.mark.parametrize("rid", [None, "mine"])
@pytest.mark.parametrize("turns", [0, 3])
async def test_over_before_it_is_marked_it_leaves_nothing(rid: str | None, turns: int) -> None:
    """`turns`: of the loop between the two; none: they come in one read."""
    worker = Worker()
    marks, _ = marks_at(worker)
    marks.expect(ExpectAbort(5, 1, rid, False))
    for _ in range(turns):
        await asyncio.sleep(0)
    marks.over(1, ["w"])
    worker.read.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not worker.expected.standing
