"""The runner in virtual time: on time, bounded, turns in order, late by whose fault."""

import asyncio
from collections.abc import Callable

import pytest

from radixgate.analysis import latency
from radixgate.analysis.records import Arrival, RequestRecord
from radixgate.analysis.summary import summarise
from radixgate.loadgen.answers import Answer
from radixgate.loadgen.arrivals import arrival_times
from radixgate.loadgen.exchange import Exchange
from radixgate.loadgen.progress import NoProgress
from radixgate.loadgen.prompts import TextPrompt
from radixgate.loadgen.runner import Runner
from radixgate.loadgen.schedule import PlannedPrompt, Schedule, ScheduledRequest, plan, stream_of
from virtual_time import LoopClock, run_virtually

CLOCK = LoopClock()


class Server:
    """Answers with one token after a fixed time; `places` requests at once, the others queue."""

    def __init__(self, service_s: Callable[[int], float], places: int | None = None) -> None:
        self._service_s = service_s
        self._places = asyncio.Semaphore(places or 1_000_000)
        self.in_flight = 0
        self.most_in_flight = 0
        self.order: list[int] = []

    async def send(self, request: ScheduledRequest) -> Exchange:
        start_s = CLOCK.now()
        self.order.append(request.index)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        async with self._places:
            await asyncio.sleep(self._service_s(request.index))
        self.in_flight -= 1
        return Exchange(t_dispatch_s=start_s, t_end_s=CLOCK.now(), status=200)


def read(exchange: Exchange) -> Answer:
    return Answer(exchange.t_end_s, (Arrival(exchange.t_end_s, 1),), output_tokens=1)


def play(
    schedule: Schedule, server: Server, *, max_concurrency: int | None = None
) -> list[RequestRecord]:
    async def main() -> list[RequestRecord]:
        await asyncio.sleep(17.0)  # a run does not begin when the clock does
        runner = Runner(server.send, read, CLOCK, NoProgress(), max_concurrency=max_concurrency)
        return await runner.play(schedule)

    return run_virtually(main())


def alone(times_s: list[float]) -> Schedule:
    return plan([PlannedPrompt(TextPrompt("a"), 1, 1) for _ in times_s], times_s)


def test_requests_leave_at_their_times_whatever_the_answers_do() -> None:
    times_s = [0.0, 0.25, 0.5, 4.0]
    records = play(alone(times_s), Server(lambda _: 3.0))
    assert [r.t_dispatch_s for r in records] == pytest.approx(times_s)
    assert [latency.schedule_lag_s(r) for r in records] == pytest.approx([0.0] * 4)
    assert [r.index for r in records] == [0, 1, 2, 3]


def test_a_closed_loop_keeps_its_places_full_and_never_more() -> None:
    server = Server(lambda index: 1.0 + index % 3)
    records = play(alone([0.0] * 20), server, max_concurrency=4)
    assert server.most_in_flight == 4
    assert server.order == list(range(20))
    assert summarise(records).concurrency > 3.3


def test_coordinated_omission_shows_in_response_latency_only() -> None:
    """500 ms service, 10 requests a second, one place, 60 requests: a queue that only grows."""
    times_s = arrival_times("constant", count=60, requests_per_s=10.0, rng=stream_of(1, "x"))
    run = summarise(play(alone(times_s), Server(lambda _: 0.5), max_concurrency=1))
    assert run.e2e is not None
    assert run.response_e2e is not None
    assert run.schedule_lag is not None
    assert run.e2e.max == pytest.approx(0.5)
    # The n-th of 0..59 is due at 0.1 n and done at 0.5 (n + 1).
    assert run.response_e2e.mean == pytest.approx(0.5 + 0.4 * 29.5)
    assert run.response_e2e.max == pytest.approx(0.5 + 0.4 * 59)
    assert run.schedule_lag.max == pytest.approx(0.4 * 59)


def test_the_servers_own_queue_shows_in_both() -> None:
    times_s = arrival_times("constant", count=60, requests_per_s=10.0, rng=stream_of(1, "x"))

    async def main() -> list[RequestRecord]:
        server = Server(lambda _: 0.5, places=1)
        return await Runner(server.send, read, CLOCK, NoProgress()).play(alone(times_s))

    run = summarise(run_virtually(main()))
    assert run.e2e is not None
    assert run.e2e == run.response_e2e
    assert run.e2e.mean == pytest.approx(0.5 + 0.4 * 29.5)


def test_a_stall_of_the_server_is_seen_by_all_who_were_due_in_it() -> None:
    """Two seconds of standstill at 20 requests a second: some 40 requests wait."""
    times_s = arrival_times("constant", count=200, requests_per_s=20.0, rng=stream_of(1, "x"))
    server = Server(lambda index: 2.0 if index == 100 else 0.01)
    records = play(alone(times_s), server, max_concurrency=1)
    assert max(map(latency.response_e2e_s, records)) >= 2.0
    assert 38 <= sum(latency.response_e2e_s(r) > 0.1 for r in records) <= 60
    assert sum(latency.e2e_s(r) > 0.1 for r in records) == 1


def test_a_turn_waits_for_the_one_before_and_its_think_time_or_for_its_own_time() -> None:
    def turn(number: int, think_s: float = 0.0) -> PlannedPrompt:
        return PlannedPrompt(TextPrompt("a"), 1, 1, session="s", turn=number, think_s=think_s)

    schedule = plan([turn(0, think_s=0.5), turn(1), turn(2)], [0.0, 1.0, 9.0])
    records = play(schedule, Server(lambda _: 2.0))
    assert [r.t_dispatch_s for r in records] == pytest.approx([0.0, 2.5, 9.0])
    assert [r.t_eligible_s for r in records] == pytest.approx([0.0, 2.5, 9.0])
    assert [r.t_intended_s for r in records] == pytest.approx([0.0, 1.0, 9.0])


def test_sessions_do_not_wait_for_each_other() -> None:
    prompts = [
        PlannedPrompt(TextPrompt("a"), 1, 1, session=f"s{n % 3}", turn=n // 3) for n in range(6)
    ]
    records = play(plan(prompts, [0.0] * 6), Server(lambda index: 1.0 + index))
    assert [r.t_dispatch_s for r in records] == pytest.approx([0, 0, 0, 1, 2, 3])


@pytest.mark.slow
def test_mean_in_flight_is_rate_times_latency() -> None:
    """M/M/1 at rho 0.5 in virtual time, and Little's law on the same run."""
    rng = stream_of(3, "service")
    service_s = [rng.expovariate(10.0) for _ in range(4000)]
    times_s = arrival_times("poisson", count=4000, requests_per_s=5.0, rng=stream_of(3, "times"))

    async def main() -> list[RequestRecord]:
        server = Server(lambda index: service_s[index], places=1)
        return await Runner(server.send, read, CLOCK, NoProgress()).play(alone(times_s))

    run = summarise(run_virtually(main()))
    assert run.e2e is not None
    assert run.concurrency == pytest.approx(run.request_rate * run.e2e.mean, rel=1e-9)
    # Theory says 0.2 s; 4,000 correlated values know it within some 10 %.
    assert run.e2e.mean == pytest.approx(1 / (10 - 5), rel=0.15)
