"""A model fitted to a run of which every time is known."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from radixgate.analysis.records import RequestRecord
from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.reports.run_folder import run_info, write_run
from radixgate.loadgen.simulator.config import SimulateConfig
from radixgate.loadgen.simulator.dataset_config import DatasetConfig
from radixgate.loadgen.simulator.engine_fit import fitted
from radixgate.loadgen.simulator.engine_model import ENGINES, EngineModel
from radixgate.loadgen.simulator.job import Job
from radixgate.loadgen.simulator.rules import rule_named
from radixgate.loadgen.simulator.simulate import Trial
from radixgate.loadgen.simulator.simulation import SimulatedSite, Simulation
from radixgate.loadgen.simulator.workload import Client, Workload
from radixgate.loadgen.workload_config import WorkloadConfig
from radixgate.policies.registry import PolicyConfigs
from request_records import record
from simulated import BLOCK, STUDY, request

TRUE = replace(STUDY, step_s=0.004, prefill_token_s=20e-6, decode_row_s=300e-6)


def waves(engine: EngineModel, count: int = 12) -> list[RequestRecord]:
    """Prompts one after the other, each alone; then all of a wave decode together."""
    found: list[RequestRecord] = []
    now = 0.0
    for wave in range(count):
        rows = 1 + wave % 4
        lengths = [200 + 700 * ((wave + place) % 5) for place in range(rows)]
        sent, firsts = [], []
        for tokens in lengths:
            sent.append(now)
            now += engine.step_time(tokens, 0, 0)
            firsts.append(now)
        steps = []
        for step in range(39):
            now += engine.step_time(0, rows, sum(lengths) + rows * (step + 1))
            steps.append(now)
        for begins, first, tokens in zip(sent, firsts, lengths, strict=True):
            chunks = [(first, 1), *((at_s, 1) for at_s in steps)]
            number = len(found)
            found.append(record(*chunks, sent=begins, prompt=tokens, cached=0, index=number))
        now += 0.5
    return found


def test_it_finds_the_model_that_made_the_times() -> None:
    model = fitted(waves(TRUE), STUDY)
    assert model.step_s == pytest.approx(TRUE.step_s, rel=0.05)
    assert model.prefill_token_s == pytest.approx(TRUE.prefill_token_s, rel=0.1)
    assert model.decode_row_s == pytest.approx(TRUE.decode_row_s, rel=0.1)
    assert model.chunk_tokens == STUDY.chunk_tokens


def test_what_is_cached_is_not_computed() -> None:
    half = [replace(one, cached_tokens=(one.prompt_tokens or 0) // 2) for one in waves(TRUE)]
    model = fitted(half, STUDY)
    assert model.prefill_token_s == pytest.approx(2 * TRUE.prefill_token_s, rel=0.1)


def test_it_finds_by_how_much_a_neighbour_slows_a_worker_down() -> None:
    """The same waves twice: alone on the machine, and half as slow again beside another worker."""
    alone = waves(TRUE)
    slow = waves(
        replace(
            TRUE,
            step_s=1.5 * TRUE.step_s,
            prefill_token_s=1.5 * TRUE.prefill_token_s,
            decode_row_s=1.5 * TRUE.decode_row_s,
            context_token_s=1.5 * TRUE.context_token_s,
        )
    )
    later_s = alone[-1].t_last_s + 1.0
    until_s = later_s + slow[-1].t_last_s
    # Two prompts at a time, neither of which tells anything of how long a prompt takes.
    beside = [
        record((until_s, 1), sent=later_s - 0.1, prompt=1, worker="other", index=n)
        for n in range(2)
    ]
    records = [*alone, *(shifted(one, later_s) for one in slow), *beside]
    model = fitted(records, STUDY, shared_cores=True)
    assert model.neighbour_share == pytest.approx(0.5, rel=0.02)
    assert model.step_s == pytest.approx(TRUE.step_s, rel=0.05)
    assert model.prefill_token_s == pytest.approx(TRUE.prefill_token_s, rel=0.1)
    assert model.decode_row_s == pytest.approx(TRUE.decode_row_s, rel=0.1)
    assert fitted(records, STUDY).neighbour_share == 0.0


def shifted(one: RequestRecord, by_s: float) -> RequestRecord:
    return replace(
        one,
        t_dispatch_s=one.t_dispatch_s + by_s,
        t_last_s=one.t_last_s + by_s,
        arrivals=tuple(replace(piece, at_s=piece.at_s + by_s) for piece in one.arrivals),
    )


@pytest.mark.parametrize(
    ("records", "complaint"),
    [
        pytest.param([], "0 prompts alone at their worker and 0 gaps", id="nothing"),
        pytest.param(waves(TRUE, count=1), "1 prompts alone", id="too-few"),
        pytest.param(
            [replace(one, prompt_tokens=100) for one in waves(TRUE)],
            "longer prompts did not take longer",
            id="all-of-one-length",
        ),
    ],
)
def test_a_run_that_tells_too_little_is_refused(
    records: list[RequestRecord], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        fitted(records, STUDY)


def test_the_simulator_takes_a_run_s_folder(tmp_path: Path) -> None:
    sections = (BenchConfig(), WorkloadConfig(), ArrivalConfig())
    write_run(tmp_path, run_info(sections, "0", [], "2026-01-01T00:00:00"), waves(TRUE), [])
    config = SimulateConfig(fit=str(tmp_path))
    trial = Trial(config, DatasetConfig(dataset_name="random", num_prompts=3))
    assert trial.engine.step_s == pytest.approx(TRUE.step_s, rel=0.05)


def test_one_worker_s_run_does_not_tell_how_much_neighbours_add() -> None:
    with pytest.raises(ConfigError, match=r"0\.00 to 0\.00 other workers were busy"):
        fitted(waves(TRUE), STUDY, shared_cores=True)


def test_it_finds_the_share_by_which_simulated_workers_slowed_each_other_down() -> None:
    """Not exactly: who begins later pays for the time that both have in common."""
    engine = replace(ENGINES["cpu"], step_s=0.030, prefill_token_s=0.002, neighbour_share=0.4)
    site = SimulatedSite(workers=2, kv_blocks=1_000, block_size=BLOCK, engine=engine)
    rng = random.Random(1)
    load = Workload(
        [
            Client((n + rng.random() / 2) / 2, [request(rng.randrange(16, 400), 4)])
            for n in range(200)
        ]
    )
    jobs = Simulation(site, rule_named("random", PolicyConfigs()), 1).run(load).jobs
    model = fitted([seen(job) for job in jobs], ENGINES["cpu"], shared_cores=True)
    assert model.neighbour_share == pytest.approx(0.4, rel=0.25)
    assert model.prefill_token_s == pytest.approx(0.002, rel=0.1)


def seen(job: Job) -> RequestRecord:
    """What a client sees of it, its tokens evenly spread."""
    count = job.request.output_tokens
    gap_s = (job.ended_s - job.first_s) / (count - 1)
    return record(
        *((job.first_s + gap_s * place, 1) for place in range(count)),
        sent=job.arrived_s,
        prompt=job.request.input_tokens,
        cached=job.cached_tokens,
        worker=str(job.worker),
        index=job.number,
    )
