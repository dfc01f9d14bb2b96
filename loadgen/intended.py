"""From the prompts of a dataset to a schedule: which request is meant for which time."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ArrivalConfig, arrival_times
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.by_name import planned_prompts
from radixgate.loadgen.schedule import (
    PlannedPrompt,
    Schedule,
    from_lines,
    plan,
    stream_of,
)
from radixgate.loadgen.workload_config import WorkloadConfig


def schedule_of(
    config: BenchConfig,
    workload: WorkloadConfig | None = None,
    shape: ArrivalConfig | None = None,
) -> Schedule:
    """All requests of the run, from the seed alone. Raises ConfigError.

    Sessions arrive at the configured rate. A later turn is meant for its session's time, which
    leaves it to the turn before and the think time.
    """
    if config.schedule_from is not None:
        return _written(Path(config.schedule_from))
    prompts = planned_prompts(config, workload or WorkloadConfig())
    return scheduled(prompts, config, shape or ArrivalConfig())


def scheduled(
    prompts: Sequence[PlannedPrompt], config: BenchConfig, shape: ArrivalConfig
) -> Schedule:
    """Times for prompts that are there already."""
    if config.arrives == "trace":
        return plan(prompts, _trace_times(prompts, config, shape))
    if config.arrives == "rl-step":
        return _in_steps(prompts, shape.rl_target)
    starts = dict.fromkeys(_session(place, planned) for place, planned in enumerate(prompts))
    times_s = arrival_times(
        config.arrives,
        count=len(starts),
        requests_per_s=config.request_rate,
        rng=stream_of(config.seed, "arrivals"),
        shape=shape,
    )
    time_of = dict(zip(starts, times_s, strict=True))
    return plan(
        prompts, [time_of[_session(place, planned)] for place, planned in enumerate(prompts)]
    )


def _written(path: Path) -> Schedule:
    try:
        schedule = from_lines(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigError(f"--schedule-from {path}: {error.strerror}") from error
    if not schedule:
        raise ConfigError(f"--schedule-from {path} holds no requests")
    return schedule


def _trace_times(
    prompts: Sequence[PlannedPrompt], config: BenchConfig, shape: ArrivalConfig
) -> list[float]:
    times_s: list[float] = []
    for planned in prompts:
        if planned.at_s is None:
            raise ConfigError(
                f"--arrival trace: --dataset-name {config.dataset_name} has no times of its own; "
                "use mooncake with a file that has timestamps, or another --arrival"
            )
        times_s.append(planned.at_s)
    start_s = min(times_s)
    return [(time_s - start_s) * shape.trace_slowdown for time_s in times_s]


def _in_steps(prompts: Sequence[PlannedPrompt], target: float) -> Schedule:
    """Each step's requests all at once, when the step before is over."""
    schedule = plan(prompts, [0.0] * len(prompts))
    steps = [list(step) for _, step in groupby(prompts, key=lambda planned: planned.step)]
    wanted = [max(1, round(len(step) * target)) for step in steps for _ in step]
    numbers = [number for number, step in enumerate(steps) for _ in step]
    return tuple(
        replace(request, step=number, step_target=goal)
        for request, number, goal in zip(schedule, numbers, wanted, strict=True)
    )


def _session(place: int, planned: PlannedPrompt) -> str:
    """Unique to a prompt that is a session of its own; names of datasets hold no NUL."""
    return f"\0{place}" if planned.session is None else planned.session
