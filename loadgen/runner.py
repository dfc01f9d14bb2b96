"""Plays a schedule: it decides nothing, it is only on time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from itertools import groupby

from radixgate.analysis.records import ABANDONED, Arrival, RequestRecord
from radixgate.clock import Clock
from radixgate.loadgen.alarms import Alarms
from radixgate.loadgen.answers import Answer, Read
from radixgate.loadgen.exchange import Exchange
from radixgate.loadgen.progress import Progress, RequestEnd, ended_of
from radixgate.loadgen.schedule import Schedule, ScheduledRequest

Send = Callable[[ScheduledRequest], Awaitable[Exchange]]

# Answers are read after the run, so that reading one delays no stamp of another. Past this many
# bytes of them each is read as it ends.
MOST_UNREAD_BYTES = 512 * 2**20


class Runner:
    """Open loop across sessions, closed loop within one.

    A request is sent at its intended time, or, as a later turn, when the turn before is done and
    its think time over, whichever is later; and only as one of `max_concurrency` (None: an open
    loop, which by its nature has no bound). Requests that are due at one moment leave in the
    schedule's order; those that wait for a place get it in the order in which they became due. A
    step begins when the one before it is over; what it then still has in flight is abandoned. A
    run holds the records of all requests.
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
        self._alarms = Alarms(clock)
        self._start_s = 0.0
        self._records: list[RequestRecord] = []
        self._unread: list[tuple[ScheduledRequest, float, Exchange]] = []
        self._unread_bytes = 0
        self._to_go = 0  # answers until the step is over
        self._tasks: list[asyncio.Task[None]] = []

    async def play(self, schedule: Schedule, start_s: float | None = None) -> list[RequestRecord]:
        """Send everything; returns the records in the order of the schedule.

        `start_s` is the clock's time that the schedule's times count from; None: now. A cancelled
        run cancels what is in flight.
        """
        self._records, self._unread, self._unread_bytes = [], [], 0
        self._start_s = self._clock.now() if start_s is None else start_s
        steps = sorted(schedule, key=lambda request: request.step)
        for number, step in groupby(steps, key=lambda request: request.step):
            since_s = self._clock.now() - self._start_s if number else 0.0
            await self._play_step(list(step), since_s)
        self._records += [self._record(*held) for held in self._unread]
        return sorted(self._records, key=lambda record: record.index)

    async def _play_step(self, requests: Sequence[ScheduledRequest], since_s: float) -> None:
        target = requests[0].step_target
        self._to_go = len(requests) if target is None else target
        in_order = sorted(requests, key=lambda request: request.session)
        sessions = [list(turns) for _, turns in groupby(in_order, lambda one: one.session)]
        sessions.sort(key=lambda turns: (turns[0].t_intended_s, turns[0].index))
        async with asyncio.TaskGroup() as group:
            self._tasks = [
                group.create_task(self._play_session(turns, since_s)) for turns in sessions
            ]

    async def _play_session(self, turns: list[ScheduledRequest], since_s: float) -> None:
        ordered = sorted(turns, key=lambda one: one.turn)
        due_s = free_s = since_s
        done = 0
        try:
            for request in ordered:
                due_s = max(since_s + request.t_intended_s, free_s)
                await self._alarms.until(self._start_s + due_s)
                exchange = await self._in_a_place(request)
                done += 1
                self._take(request, due_s, exchange)
                free_s = exchange.t_end_s - self._start_s + request.think_s
        except asyncio.CancelledError:
            if self._to_go > 0:  # the run is cancelled, and not the rest of a finished step
                raise
            for request in ordered[done:]:
                self._abandon(request, due_s)

    def _take(self, request: ScheduledRequest, due_s: float, exchange: Exchange) -> None:
        if self._unread_bytes < MOST_UNREAD_BYTES:
            self._unread_bytes += sum(len(piece) for _, piece in exchange.pieces)
            self._unread.append((request, due_s, exchange))
        else:
            self._records.append(self._record(request, due_s, exchange))
        self._progress.note(ended_of(exchange))
        self._to_go -= 1
        if self._to_go == 0:
            current = asyncio.current_task()
            for task in self._tasks:
                if task is not current:
                    task.cancel()

    def _abandon(self, request: ScheduledRequest, due_s: float) -> None:
        now = self._clock.now()
        never = Exchange(t_dispatch_s=self._start_s + due_s, t_end_s=now)
        answer = Answer(t_last_s=now, failure=ABANDONED)
        self._records.append(self._record(request, due_s, never, answer))
        self._progress.note(RequestEnd(failed=False, ttft_s=None))

    async def _in_a_place(self, request: ScheduledRequest) -> Exchange:
        async with AsyncExitStack() as stack:
            if self._places is not None:
                await stack.enter_async_context(self._places)
            return await self._send(request)

    def _record(
        self,
        request: ScheduledRequest,
        due_s: float,
        exchange: Exchange,
        answer: Answer | None = None,
    ) -> RequestRecord:
        """`answer` stands for what would be read from the exchange."""
        answer = answer or self._read(exchange)
        start_s = self._start_s
        # Of a step, the intended time is known only once the step has begun.
        intended_s = due_s if request.step_target is not None else request.t_intended_s
        return RequestRecord(
            index=request.index,
            session=request.session,
            turn=request.turn,
            group=request.group,
            t_intended_s=intended_s,
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
