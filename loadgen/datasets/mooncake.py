"""Traces in Mooncake's form: hash ids expanded to tokens that share what the ids share."""

import random
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

from radixgate.errors import ConfigError
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.random_lengths import LOWEST_ID
from radixgate.loadgen.prompts import IdsPrompt, SentPrompt, TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, stream_of
from radixgate.loadgen.trace_rows import TraceRow, check_block_size, read_rows
from radixgate.loadgen.vocabulary import WORDS
from radixgate.loadgen.workload_config import WorkloadConfig


def mooncake(config: BenchConfig, workload: WorkloadConfig) -> list[PlannedPrompt]:
    """The first `--num-prompts` rows of a JSON lines file, plain or gzip.

    A hash id stands for a block of `trace_block_size` tokens and everything before it, so it is
    expanded to the same words (or ids) wherever it comes; what is left of a prompt after its ids
    is its own. Raises ConfigError with the file and line, and for blocks of another size.
    """
    if config.dataset_path is None:
        raise ConfigError("--dataset-name mooncake needs --dataset-path: nothing is downloaded")
    path = Path(config.dataset_path)
    rows = read_rows(path, config.num_prompts)
    check_block_size(path, rows, workload.trace_block_size, "--trace-block-size")
    expand = _expander(config, workload)
    return [
        PlannedPrompt(
            expand(place, row),
            _shrunk(row.input_length, workload),
            _shrunk(row.output_length, workload),
            session=row.session_name,
            turn=turn,
            group=row.group_name,
            think_s=think_s,
            at_s=row.at_s,
        )
        for place, (row, (turn, think_s)) in enumerate(zip(rows, _turns(rows), strict=True))
    ]


def _expander(
    config: BenchConfig, workload: WorkloadConfig
) -> Callable[[int, TraceRow], SentPrompt]:
    as_ids = workload.trace_tokens == "ids"
    block = max(1, round(workload.trace_block_size / workload.trace_shrink))

    def tokens(rng: random.Random, count: int) -> list[str] | list[int]:
        if as_ids:
            return rng.choices(range(LOWEST_ID, config.random_ids_below), k=count)
        return rng.choices(WORDS, k=count)

    @cache
    def of_id(hash_id: int) -> list[str] | list[int]:
        return tokens(stream_of(config.seed, f"block/{hash_id}"), block)

    def expand(place: int, row: TraceRow) -> SentPrompt:
        length = _shrunk(row.input_length, workload)
        parts = [of_id(hash_id) for hash_id in row.hash_ids]
        missing = length - block * len(parts)
        if missing > 0:
            parts.append(tokens(stream_of(config.seed, f"tail/{place}"), missing))
        whole = [token for part in parts for token in part][:length]
        if as_ids:
            return IdsPrompt(tuple(int(token) for token in whole))
        return TextPrompt(" ".join(map(str, whole)))

    return expand


def _turns(rows: list[TraceRow]) -> list[tuple[int, float]]:
    """Of each row, its number in its session and the pause after it.

    Rows count their turns as they like, or not at all: their order is what holds. A row tells the
    time before its own turn; a plan tells the time after it.
    """
    sessions: dict[object, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        sessions[_session_key(row)].append(place)
    found = [(0, 0.0)] * len(rows)
    for places in sessions.values():
        in_order = sorted(places, key=lambda place: rows[place].turn)
        pauses = [rows[place].think_before_s for place in in_order[1:]]
        for number, (place, think_s) in enumerate(zip(in_order, [*pauses, 0.0], strict=True)):
            found[place] = number, think_s
    return found


def _session_key(row: TraceRow) -> object:
    name = row.session_name
    return id(row) if name is None else name


def _shrunk(tokens: int, workload: WorkloadConfig) -> int:
    return max(1, round(tokens / workload.trace_shrink))
