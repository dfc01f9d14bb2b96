"""Bench's datasets and schedules as the simulator sends them."""

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.by_name import planned_prompts
from radixgate.loadgen.intended import schedule_of
from radixgate.loadgen.schedule import as_lines, write_schedule
from radixgate.loadgen.simulator.config import SimulateConfig
from radixgate.loadgen.simulator.dataset_config import DATASETS, DatasetConfig
from radixgate.loadgen.simulator.planned import dataset_requests, is_schedule, schedule_requests
from radixgate.loadgen.simulator.simulate import Trial
from radixgate.loadgen.simulator.trace import TracedRequest, is_closed_loop
from radixgate.loadgen.workload_config import WorkloadConfig

SHAPES = WorkloadConfig(
    rag_documents=20, rag_document_len=64, rag_question_len=8, grpo_steps=3, grpo_groups=2
)


def requests_of(dataset: DatasetConfig) -> list[TracedRequest]:
    return dataset_requests(dataset, SHAPES, seed=1, block_size=16)


@pytest.mark.parametrize("name", DATASETS)
def test_each_dataset_can_be_simulated(name: str) -> None:
    requests = requests_of(DatasetConfig(dataset_name=name, num_prompts=12))
    assert len(requests) == 12
    for request in requests:
        assert len(request.ids) == request.input_tokens // 16
        assert 0 not in request.ids
    assert is_closed_loop(requests) == (name == "agentic")


def test_a_shared_prefix_is_shared_and_a_question_is_not() -> None:
    dataset = DatasetConfig(
        dataset_name="generated-shared-prefix",
        gsp_num_groups=2,
        gsp_prompts_per_group=3,
        gsp_system_prompt_len=64,
        gsp_question_len=32,
    )
    requests = requests_of(dataset)
    assert len({request.ids[:4] for request in requests}) == 2
    assert len({request.ids for request in requests}) == 6


def test_rollouts_of_a_step_come_at_once_and_steps_at_the_pace_of_the_load() -> None:
    requests = requests_of(DatasetConfig(dataset_name="grpo"))
    assert [request.at_s for request in requests] == [0.0] * 16 + [16.0] * 16 + [32.0] * 16
    assert len({request.ids for request in requests[:16]}) == 2


@pytest.mark.parametrize(("steps", "begins"), [(1, [0.0]), (3, [0.0, 16.0, 32.0])])
def test_no_jitter_spreads_a_step(steps: int, begins: list[float]) -> None:
    shapes = WorkloadConfig(grpo_steps=steps, grpo_groups=2)
    trial = Trial(SimulateConfig(capacity=1.0), DatasetConfig(dataset_name="grpo"), shapes)
    sent = trial.workload(1.0 if steps == 1 else 33 / 32)
    assert [client.starts_s for client in sent.clients] == [at for at in begins for _ in range(16)]


def test_a_schedule_in_steps_is_played_in_steps(tmp_path: Path) -> None:
    path = tmp_path / "schedule.jsonl"
    config = BenchConfig(dataset_name="grpo", arrival="rl-step")
    write_schedule(path, schedule_of(config, SHAPES))
    assert [one.at_s for one in schedule_requests(path, 16)] == [
        one.at_s for one in requests_of(DatasetConfig(dataset_name="grpo"))
    ]


def test_turns_of_an_agent_go_on_from_the_turn_before() -> None:
    dataset = DatasetConfig(dataset_name="agentic", num_prompts=8)
    requests = requests_of(dataset)
    turns = [one for one in requests if one.session == "agent0"]
    assert [one.turn for one in turns] == list(range(8))
    for before, after in pairwise(turns):
        assert after.ids[: len(before.ids)] == before.ids
    planned = planned_prompts(dataset.bench(1), SHAPES)
    assert [one.think_s for one in turns] == [0.0, *(one.think_s for one in planned[:7])]


def test_a_schedule_that_bench_wrote_is_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "schedule.jsonl"
    config = BenchConfig(dataset_name="random-ids", num_prompts=9, request_rate=3.0)
    schedule = schedule_of(config)
    write_schedule(path, schedule)
    assert is_schedule(path)
    requests = schedule_requests(path, 64)
    assert [one.at_s for one in requests] == [one.t_intended_s for one in schedule]
    assert [one.input_tokens for one in requests] == [one.prompt_tokens for one in schedule]
    assert len(Trial(SimulateConfig(trace=str(path), max_requests=5))) == 5


def test_a_schedule_keeps_times_that_are_shared_and_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "schedule.jsonl.gz"
    config = BenchConfig(dataset_name="random-ids", num_prompts=9)
    path.write_bytes(gzip.compress(as_lines(schedule_of(config))))
    assert is_schedule(path)
    trial = Trial(SimulateConfig(trace=str(path), capacity=5.0))
    assert {client.starts_s for client in trial.workload(1.0).clients} == {0.0}
    assert trial.title() == (
        "9 requests at once, whatever --load says: all have one time; capacity 5.00/s"
    )


def test_what_is_sent_is_said_once() -> None:
    with pytest.raises(ConfigError, match="give --trace FILE, or --dataset-name"):
        Trial(SimulateConfig())
    with pytest.raises(ConfigError, match="give one of them"):
        Trial(SimulateConfig(trace="any"), DatasetConfig(dataset_name="rag"))
