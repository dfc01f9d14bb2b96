"""Steps of a training run in virtual time: a barrier between them, and what is given up."""

import asyncio

import pytest

from radixgate.analysis.records import ABANDONED, Arrival, RequestRecord
from radixgate.analysis.summary import summarise
from radixgate.loadgen.answers import Answer
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.exchange import Exchange
from radixgate.loadgen.intended import schedule_of
from radixgate.loadgen.progress import NoProgress
from radixgate.loadgen.runner import Runner
from radixgate.loadgen.schedule import ScheduledRequest
from radixgate.loadgen.workload_config import WorkloadConfig
from virtual_time import LoopClock, run_virtually

CLOCK = LoopClock()
STEPS = WorkloadConfig(grpo_steps=2, grpo_groups=2, grpo_group_size=2, grpo_prompt_len=2)


def played(target: float, *, max_concurrency: int | None = None) -> list[RequestRecord]:
    """Two steps of four; the n-th of a step takes n + 1 seconds."""

    async def send(request: ScheduledRequest) -> Exchange:
        start_s = CLOCK.now()
        await asyncio.sleep(1.0 + request.index % 4)
        return Exchange(t_dispatch_s=start_s, t_end_s=CLOCK.now(), status=200)

    def read(exchange: Exchange) -> Answer:
        return Answer(exchange.t_end_s, (Arrival(exchange.t_end_s, 1),), output_tokens=1)

    async def main() -> list[RequestRecord]:
        runner = Runner(send, read, CLOCK, NoProgress(), max_concurrency=max_concurrency)
        config = BenchConfig(dataset_name="grpo", arrival="rl-step")
        return await runner.play(schedule_of(config, STEPS, ArrivalConfig(rl_target=target)))

    return run_virtually(main())


def test_a_step_begins_when_the_one_before_is_over() -> None:
    records = played(1.0)
    assert [r.t_dispatch_s for r in records] == pytest.approx([0.0] * 4 + [4.0] * 4)
    assert [r.t_eligible_s for r in records] == pytest.approx([0.0] * 4 + [4.0] * 4)
    assert all(record.ok for record in records)


def test_enough_answers_end_a_step_and_the_rest_is_given_up() -> None:
    records = played(0.5)
    assert [r.failure for r in records] == [None, None, ABANDONED, ABANDONED] * 2
    assert [r.t_dispatch_s for r in records[4:6]] == pytest.approx([2.0, 2.0])
    run = summarise(records)
    assert (run.offered, run.completed, run.failed, run.abandoned) == (4, 4, 0, 4)
    assert run.failures == {}


def test_what_never_got_a_place_is_given_up_too() -> None:
    records = played(0.5, max_concurrency=1)
    assert [r.failure for r in records[:4]] == [None, None, ABANDONED, ABANDONED]
    assert records[4].t_dispatch_s == pytest.approx(3.0)
