"""What a child has marked because an order to abort is about to go out, from it or another."""

import asyncio
from collections.abc import Callable, Collection

from radixgate.gateway.admin.rids import read_rids
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.exchange.held_requests import HeldRequests
from radixgate.gateway.processes.messages import Aborted, ExpectAbort
from radixgate.gateway.workers.roster import Roster


class AbortMarks:
    """By the order's number, until its parent says that it has been given."""

    def __init__(
        self, roster: Roster, held: HeldRequests, answer: Callable[[Aborted], None]
    ) -> None:
        """`answer`: that all is marked, and how many that were held have ended."""
        self._roster = roster
        self._held = held
        self._answer = answer
        self._over: dict[int, list[tuple[str, Callable[[bool], None]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def expect(self, asked: ExpectAbort) -> None:
        """At once for an order that means everything. Another has bodies to be read first, and is
        forgotten if it is over before that: a parent waits for two seconds and no longer."""
        self._over[asked.order] = []
        order = AbortOrder(asked.rid, prefix=asked.prefix)
        if order.everything:
            self._mark(asked, order)
            return
        task = asyncio.get_running_loop().create_task(self._read_and_mark(asked, order))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def over(self, number: int, taken: Collection[str]) -> None:
        """`taken`: the ids of workers that took it. Harmless for one that came after its start."""
        for worker_id, over in self._over.pop(number, ()):
            over(worker_id in taken)

    async def _read_and_mark(self, asked: ExpectAbort, order: AbortOrder) -> None:
        await read_rids(order, self._held, self._roster.members())
        if asked.order in self._over:
            self._mark(asked, order)

    def _mark(self, asked: ExpectAbort, order: AbortOrder) -> None:
        """O(requests that run or are held)."""
        held = self._held.abort(order)
        self._over[asked.order] = [
            (one.address.id, one.handle.expect_abort(order)) for one in self._roster.members()
        ]
        self._answer(Aborted(asked.number, held, []))
