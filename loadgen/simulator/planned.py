"""The requests of bench's datasets and schedules, as the simulator takes them."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from xxhash import xxh3_64_intdigest, xxh32_intdigest

from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import arrival_times
from radixgate.loadgen.datasets.by_name import planned_prompts
from radixgate.loadgen.prompts import SentPrompt
from radixgate.loadgen.schedule import PlannedPrompt, ScheduledRequest, from_lines, stream_of
from radixgate.loadgen.simulator.dataset_config import DatasetConfig
from radixgate.loadgen.simulator.trace import TracedRequest
from radixgate.loadgen.trace_rows import lines_of
from radixgate.loadgen.workload_config import WorkloadConfig
from radixgate.proto.blocks import chain

# Every prompt begins here; the block pool's root is 0.
_ROOT = 1


def dataset_requests(
    dataset: DatasetConfig, workload: WorkloadConfig, seed: int, block_size: int
) -> list[TracedRequest]:
    """The dataset's requests: Poisson at any pace, steps, or sessions without times.

    O(tokens). Raises ConfigError for settings that cannot be.
    """
    config = dataset.bench(seed)
    prompts = planned_prompts(config, workload)
    if all(planned.session is not None for planned in prompts):
        return _turns(prompts, block_size)
    if dataset.dataset_name == "grpo":
        times = _step_begins([planned.step for planned in prompts])
    else:
        rng = stream_of(seed, "arrivals")
        times = arrival_times("poisson", count=len(prompts), requests_per_s=1.0, rng=rng)
    return [
        _request(planned.prompt, planned.output_tokens, at_s, block_size)
        for planned, at_s in zip(prompts, times, strict=True)
    ]


def schedule_requests(path: Path, block_size: int) -> list[TracedRequest]:
    """A schedule that bench wrote, plain or gzip; with several turns a session a closed loop.

    Raises ConfigError with the line that is none.
    """
    schedule = from_lines(b"".join(lines_of(path)), str(path))
    if not schedule:
        raise ConfigError(f"{path} holds no requests")
    if max(request.turn for request in schedule):
        return _turns(schedule, block_size)
    times = [request.t_intended_s for request in schedule]
    if any(request.step_target is not None for request in schedule):
        times = _step_begins([request.step for request in schedule])
    return [
        _request(request.prompt, request.output_tokens, at_s, block_size)
        for request, at_s in zip(schedule, times, strict=True)
    ]


def is_schedule(path: Path) -> bool:
    """By its first line; False also for a file that cannot be read."""
    try:
        return b'"t_intended_s"' in next(lines_of(path), b"")
    except ConfigError:
        return False


def _step_begins(steps: Sequence[int]) -> list[float]:
    """A step at once; at one request a second on average: whoever sends them sets the pace."""
    sizes = Counter(steps)
    begins = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
    return [float(begins[step]) for step in steps]


def _request(prompt: SentPrompt, output_tokens: int, at_s: float, block_size: int) -> TracedRequest:
    tokens = _tokens(prompt)
    return TracedRequest(
        at_s=at_s,
        input_tokens=len(tokens),
        output_tokens=max(1, output_tokens),
        ids=tuple(chain(_ROOT, tokens, block_size)),
        fingerprint=xxh3_64_intdigest(tokens) | 1,
    )


def _turns(
    planned: Sequence[PlannedPrompt] | Sequence[ScheduledRequest], block_size: int
) -> list[TracedRequest]:
    """Bench has the pause after a turn, a trace the one before it."""
    think_after = {(one.session, one.turn): one.think_s for one in planned}
    return [
        replace(
            _request(one.prompt, one.output_tokens, -1.0, block_size),
            session=one.session,
            turn=one.turn,
            think_s=think_after.get((one.session, one.turn - 1), 0.0),
        )
        for one in planned
    ]


def _tokens(prompt: SentPrompt) -> "array[int]":
    """Its ids, or a number for each of its words."""
    content, size = prompt.units()
    tokens = array("I")
    if size == tokens.itemsize:
        tokens.frombytes(content)
    else:
        tokens.extend(_numbers(content.split()))
    if not tokens:
        raise ConfigError("a prompt without a word cannot be simulated")
    return tokens


def _numbers(words: Iterable[bytes]) -> Iterable[int]:
    return map(xxh32_intdigest, words)
