"""Traces in Mooncake's form: hash ids expanded to tokens that share what the ids share."""

import gzip
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.random_lengths import LOWEST_ID
from radixgate.loadgen.prompts import IdsPrompt, Prompt, TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, stream_of
from radixgate.loadgen.vocabulary import WORDS
from radixgate.loadgen.workload_config import WorkloadConfig


class _Row(msgspec.Struct):
    input_length: int
    output_length: int
    hash_ids: list[int]
    timestamp: float | None = None  # ms
    session: str | int | None = None
    session_id: str | int | None = None
    group_id: str | int | None = None
    turn: int = 0
    think: float | None = None  # s before this turn
    think_ms: float | None = None


def mooncake(config: BenchConfig, workload: WorkloadConfig) -> list[PlannedPrompt]:
    """The first `--num-prompts` rows of a JSON lines file, plain or gzip.

    A hash id stands for a block of `trace_block_size` tokens and everything before it, so it is
    expanded to the same words (or ids) wherever it comes; what is left of a prompt after its ids
    is its own. Raises ConfigError with the file and line.
    """
    if config.dataset_path is None:
        raise ConfigError("--dataset-name mooncake needs --dataset-path: nothing is downloaded")
    path = Path(config.dataset_path)
    rows = list(_rows(path, config.num_prompts))
    if not rows:
        raise ConfigError(f"{path} holds no requests")
    expand = _expander(config, workload)
    thinks = [_think_s(row) for row in rows]
    return [
        PlannedPrompt(
            expand(place, row),
            _shrunk(row.input_length, workload),
            _shrunk(row.output_length, workload),
            session=_name(row.session if row.session_id is None else row.session_id),
            turn=row.turn,
            group=_name(row.group_id),
            think_s=think_s,
            at_s=None if row.timestamp is None else row.timestamp / 1000.0,
        )
        for place, (row, think_s) in enumerate(zip(rows, _after(rows, thinks), strict=True))
    ]


def _expander(config: BenchConfig, workload: WorkloadConfig) -> Callable[[int, _Row], Prompt]:
    as_ids = workload.trace_tokens == "ids"
    block = max(1, round(workload.trace_block_size / workload.trace_shrink))

    def tokens(rng: random.Random, count: int) -> list[str] | list[int]:
        if as_ids:
            return rng.choices(range(LOWEST_ID, config.random_ids_below), k=count)
        return rng.choices(WORDS, k=count)

    @cache
    def of_id(hash_id: int) -> list[str] | list[int]:
        return tokens(stream_of(config.seed, f"block/{hash_id}"), block)

    def expand(place: int, row: _Row) -> Prompt:
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


def _rows(path: Path, most: int | None) -> Iterator[_Row]:
    decode = msgspec.json.Decoder(_Row).decode
    found = 0
    for number, line in enumerate(_lines(path), 1):
        if found == most:
            return
        if not line.strip():
            continue
        try:
            row = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}:{number}: {error}") from error
        if row.input_length < 1 or row.output_length < 0:
            raise ConfigError(
                f"{path}:{number}: {row.input_length} prompt tokens and {row.output_length} of "
                "output are no request"
            )
        found += 1
        yield row


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else path.open("rb") as file:
            yield from file
    except (OSError, EOFError) as error:
        raise ConfigError(f"--dataset-path {path}: {error}") from error


def _think_s(row: _Row) -> float:
    if row.think_ms is not None:
        return max(0.0, row.think_ms / 1000.0)
    return max(0.0, row.think or 0.0)


def _after(rows: list[_Row], before_s: list[float]) -> list[float]:
    """A row tells the time before its own turn; a plan tells the time after it."""
    turn_before: dict[tuple[object, int], float] = {}
    for row, think_s in zip(rows, before_s, strict=True):
        turn_before[_session_key(row), row.turn - 1] = think_s
    return [turn_before.get((_session_key(row), row.turn), 0.0) for row in rows]


def _session_key(row: _Row) -> object:
    name = row.session if row.session_id is None else row.session_id
    return id(row) if name is None else name


def _name(value: str | int | None) -> str | None:
    return None if value is None else str(value)


def _shrunk(tokens: int, workload: WorkloadConfig) -> int:
    return max(1, round(tokens / workload.trace_shrink))
