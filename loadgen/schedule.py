"""The whole run before it runs: every request with its time, its session, its prompt and length."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import xxhash

from radixgate.errors import ConfigError
from radixgate.loadgen.prompts import SentPrompt, prompt_of_row

# Times are kept to the microsecond, so that a schedule read back is the schedule written.
_DIGITS = 6

_Seconds = Annotated[float, msgspec.Meta(ge=0.0)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


@dataclass(frozen=True, slots=True)
class PlannedPrompt:
    """One request as a dataset gives it, without its time."""

    prompt: SentPrompt
    prompt_tokens: int  # as planned; only the server knows exactly
    output_tokens: int
    session: str | None = None  # None: a session of its own
    turn: int = 0
    group: str | None = None  # of a common prefix or of a rollout; None: of no group
    think_s: float = 0.0  # between this answer and the next turn
    at_s: float | None = None  # when a trace sent it; None: the dataset has no times
    step: int = 0  # of training; a dataset without steps is one


@dataclass(frozen=True, slots=True)
class ScheduledRequest:
    """One request of a run. Turns of one session wait for each other, sessions do not."""

    index: int
    t_intended_s: float
    session: str
    turn: int
    group: str | None
    think_s: float
    prompt: SentPrompt
    prompt_tokens: int
    output_tokens: int
    # A step begins when the one before it is over, and its times count from there.
    step: int = 0
    step_target: int | None = None  # answers that end the step; None: all of them

    def row(self) -> dict[str, object]:
        in_steps = {"step": self.step, "step_target": self.step_target}
        return {
            "index": self.index,
            "t_intended_s": self.t_intended_s,
            "session": self.session,
            "turn": self.turn,
            "group": self.group,
            "think_s": self.think_s,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            **(in_steps if self.step_target is not None else {}),
            **self.prompt.row(),
        }


Schedule = tuple[ScheduledRequest, ...]


def stream_of(seed: int, purpose: str) -> random.Random:
    """A random source for one purpose, so that one more draw here changes nothing there.

    Seeded by text: the same in every process, whatever PYTHONHASHSEED says.
    """
    return random.Random(f"{seed}/{purpose}")


def plan(prompts: Sequence[PlannedPrompt], times_s: Sequence[float]) -> Schedule:
    """The n-th prompt at the n-th time. Raises ConfigError if their numbers differ."""
    if len(prompts) != len(times_s):
        raise ConfigError(f"{len(prompts)} prompts cannot be sent at {len(times_s)} times")
    return tuple(
        ScheduledRequest(
            index=index,
            t_intended_s=round(time_s, _DIGITS),
            session=f"r{index}" if planned.session is None else planned.session,
            turn=planned.turn,
            group=planned.group,
            think_s=round(planned.think_s, _DIGITS),
            prompt=planned.prompt,
            prompt_tokens=planned.prompt_tokens,
            output_tokens=planned.output_tokens,
        )
        for index, (planned, time_s) in enumerate(zip(prompts, times_s, strict=True))
    )


def as_lines(schedule: Iterable[ScheduledRequest]) -> bytes:
    """JSON lines, the same bytes for the same schedule in every process."""
    return b"".join(msgspec.json.encode(request.row()) + b"\n" for request in schedule)


def from_lines(lines: bytes, where: str = "schedule") -> Schedule:
    """The inverse of `as_lines`; empty lines are passed over.

    Raises ConfigError with `where` and the line that no server could be sent, or that has the
    index of one before.
    """
    schedule: dict[int, ScheduledRequest] = {}
    for number, line in enumerate(lines.splitlines(), 1):
        if not line.strip():
            continue
        try:
            request = _request_of(msgspec.json.decode(line, type=dict[str, object]))
        except (msgspec.DecodeError, UnicodeDecodeError, ConfigError) as error:
            raise ConfigError(f"{where}:{number}: not a row of a schedule: {error}") from error
        if request.index in schedule:
            raise ConfigError(f"{where}:{number}: index {request.index} stands a second time")
        schedule[request.index] = request
    return tuple(schedule.values())


def write_schedule(path: Path, schedule: Iterable[ScheduledRequest]) -> None:
    """Write `as_lines` to a file, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_lines(schedule))


def hash_of(schedule: Iterable[ScheduledRequest]) -> str:
    """xxh3_128 over `as_lines`: two runs with one hash sent the same bytes at the same times."""
    return xxhash.xxh3_128_hexdigest(as_lines(schedule))


class _Row(msgspec.Struct):
    index: _Count
    t_intended_s: _Seconds
    session: str
    turn: _Count
    group: str | None
    think_s: _Seconds
    prompt_tokens: _Count
    output_tokens: _AtLeastOne
    step: _Count = 0
    step_target: _AtLeastOne | None = None


def _request_of(row: dict[str, object]) -> ScheduledRequest:
    fixed = msgspec.convert(row, _Row)
    return ScheduledRequest(
        index=fixed.index,
        t_intended_s=fixed.t_intended_s,
        session=fixed.session,
        turn=fixed.turn,
        group=fixed.group,
        think_s=fixed.think_s,
        prompt=prompt_of_row(row),
        prompt_tokens=fixed.prompt_tokens,
        output_tokens=fixed.output_tokens,
        step=fixed.step,
        step_target=fixed.step_target,
    )
