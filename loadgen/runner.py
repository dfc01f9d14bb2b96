"""Plays a schedule: it decides nothing, it is only on time."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import groupby

from radixgate.analysis.records import Arrival, RequestRecord
from radixgate.clock import Clock
from radixgate.loadgen.answers import Answer, Read
from radixgate.loadgen.exchange import Exchange
from radixgate.loadgen.progress import Progress
from radixgate.loadgen.schedule import Schedule, ScheduledRequest

Send = Callable[[ScheduledRequest], Awaitable[Exchange]]


class Runner:
    """Open loop across sessions, closed loop within one.

    A request is sent at its intended time, or, as a later turn, when the turn before is done and
    its think time over, whichever is later; and only as one of `max_concurrency` (None: an open
    loop, which by its nature has no bound). Requests that wait for a place get it in the order in
    which they became due. A run holds the records of all requests.
    """

    def __init__(
        self,
        send: Send,
        read: Read,
        clock: Clock,
        progress: Progress,
        *,
        max_concurrency: int | None = None,
    ) -> None:
        self._send = send
        self._read = read
        self._clock = clock
        self._progress = progress
        self._places = None if max_concurrency is None else asyncio.Semaphore(max_concurrency)
        self._start_s = 0.0
        self._records: list[RequestRecord] = []

    async def play(self, schedule: Schedule) -> list[RequestRecord]:
        """Send everything; returns the records in the order of the schedule.

        A cancelled run cancels what is in flight.
        """
        in_order = sorted(schedule, key=lambda request: request.session)
        sessions = [list(turns) for _, turns in groupby(in_order, lambda one: one.session)]
        sessions.sort(key=lambda turns: (turns[0].t_intended_s, turns[0].index))
        self._records = []
        self._start_s = self._clock.now()
        async with asyncio.TaskGroup() as group:
            for turns in sessions:
                group.create_task(self._play_session(turns))
        return sorted(self._records, key=lambda record: record.index)

    async def _play_session(self, turns: list[ScheduledRequest]) -> None:
        free_s = 0.0
        for request in sorted(turns, key=lambda one: one.turn):
            due_s = max(request.t_intended_s, free_s)
            await self._sleep_until(due_s)
            exchange = await self._in_a_place(request)
            record = self._record(request, due_s, exchange, self._read(exchange))
            self._records.append(record)
            self._progress.note(record)
            free_s = exchange.t_end_s - self._start_s + request.think_s

    async def _in_a_place(self, request: ScheduledRequest) -> Exchange:
        async with AsyncExitStack() as stack:
            if self._places is not None:
                await stack.enter_async_context(self._places)
            return await self._send(request)

    async def _sleep_until(self, due_s: float) -> None:
        wait_s = self._start_s + due_s - self._clock.now()
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    def _record(
        self, request: ScheduledRequest, due_s: float, exchange: Exchange, answer: Answer
    ) -> RequestRecord:
        start_s = self._start_s
        return RequestRecord(
            index=request.index,
            session=request.session,
            turn=request.turn,
            group=request.group,
            t_intended_s=request.t_intended_s,
            t_eligible_s=due_s,
            t_dispatch_s=exchange.t_dispatch_s - start_s,
            t_first_byte_s=(
                None if exchange.t_first_byte_s is None else exchange.t_first_byte_s - start_s
            ),
            t_last_s=answer.t_last_s - start_s,
            arrivals=tuple(Arrival(a.at_s - start_s, a.tokens) for a in answer.arrivals),
            output_tokens=answer.output_tokens,
            tokens_counted=answer.tokens_counted,
            planned_prompt_tokens=request.prompt_tokens,
            prompt_tokens=answer.prompt_tokens,
            cached_tokens=answer.cached_tokens,
            worker_id=exchange.worker_id,
            finish_reason=answer.finish_reason,
            failure=answer.failure,
            failure_detail=answer.failure_detail,
        )
