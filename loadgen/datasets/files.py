"""Prompts that someone else wrote: JSON lines, and conversations in ShareGPT's form."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from radixgate.errors import ConfigError
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.prompts import ChatPrompt, SentPrompt, TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, stream_of

# English prose in byte-pair vocabularies; only for what has to be known before a server is asked.
_CHARACTERS_A_TOKEN = 4.2


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Part]


class _Row(msgspec.Struct):
    prompt: str | None = None
    messages: list[_Message] | None = None
    output_len: Annotated[int, msgspec.Meta(ge=0)] | None = None  # 0: not told


class _Said(msgspec.Struct):
    value: str


class _Conversation(msgspec.Struct):
    conversations: list[_Said] = msgspec.field(default_factory=list)
    conversation: list[_Said] = msgspec.field(default_factory=list)


def json_lines(config: BenchConfig) -> list[PlannedPrompt]:
    """Each line `{"prompt": ...}` or `{"messages": [...]}`, perhaps with `output_len`, in order.

    Raises ConfigError with the file and line.
    """
    path = _path_of(config)
    rows = [
        _planned(row, config, f"{path}:{number}")
        for number, row in _numbered(_bytes_of(path).splitlines(), _Row, path)
    ]
    return _first(rows, config, path)


def sharegpt(config: BenchConfig) -> list[PlannedPrompt]:
    """The first question of each conversation, with its answer's length unless one is given.

    The file is one JSON array. Conversations of one turn, and those whose question or answer is
    under four tokens, are passed over; the rest is shuffled by the seed.
    """
    path = _path_of(config)
    try:
        whole = msgspec.json.decode(_bytes_of(path), type=list[_Conversation])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a file in ShareGPT's form: {error}") from error
    turns = [item.conversations or item.conversation for item in whole]
    usable = list(_questions(turns, config))
    stream_of(config.seed, "sharegpt").shuffle(usable)
    return _first(usable, config, path)


def tokens_of(text: str) -> int:
    """A guess at a text's tokens from its length; the figures of a run use the server's counts."""
    return math.ceil(len(text) / _CHARACTERS_A_TOKEN)


def _questions(turns: Sequence[list[_Said]], config: BenchConfig) -> Iterator[PlannedPrompt]:
    for said in turns:
        if len(said) < 2:
            continue
        asked, answered = tokens_of(said[0].value), tokens_of(said[1].value)
        new = config.output_len or answered
        too_long = config.sharegpt_context_len and asked + new > config.sharegpt_context_len
        if asked < 4 or new < 4 or too_long:
            continue
        yield PlannedPrompt(TextPrompt(said[0].value), asked, new)


def _planned(row: _Row, config: BenchConfig, where: str) -> PlannedPrompt:
    if (row.prompt is None) == (row.messages is None):
        raise ConfigError(f"{where}: give either prompt or messages")
    new = row.output_len or config.output_len or config.random_output_len
    if row.prompt is not None:
        return PlannedPrompt(TextPrompt(row.prompt), tokens_of(row.prompt), new)
    turns = tuple((item.role, _text_of(item)) for item in row.messages or ())
    prompt: SentPrompt = ChatPrompt(turns)
    return PlannedPrompt(prompt, sum(tokens_of(content) for _, content in turns), new)


def _text_of(message: _Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(part.text for part in message.content)


def _numbered(lines: Sequence[bytes], form: type[_Row], path: Path) -> Iterator[tuple[int, _Row]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield number, msgspec.json.decode(line, type=form)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}:{number}: {error}") from error


def _path_of(config: BenchConfig) -> Path:
    if config.dataset_path is None:
        raise ConfigError(
            f"--dataset-name {config.dataset_name} needs --dataset-path: nothing is downloaded; "
            "--dataset-name random and generated-shared-prefix need no file"
        )
    return Path(config.dataset_path)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--dataset-path {path}: {error.strerror}") from error


def _first(rows: list[PlannedPrompt], config: BenchConfig, path: Path) -> list[PlannedPrompt]:
    count = config.prompts_or(len(rows))
    if not rows:
        raise ConfigError(f"{path} holds no usable prompt")
    if count > len(rows):
        raise ConfigError(f"--num-prompts {count} is over the {len(rows)} usable prompts of {path}")
    return rows[:count]
