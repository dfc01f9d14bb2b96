"""How a contestant is driven: one JSON task a line on stdin, one JSON result a line on stdout.

Needs nothing but the standard library, as each contestant runs in an environment of its own.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TextIO


@dataclass(frozen=True)
class Task:
    """Prompts that arrive all at once, each answered greedily with exactly `new_tokens`."""

    prompts: list[list[int]]
    new_tokens: int
    shared_tokens: int  # leading tokens that prompts of a group have in common; 0: none


@dataclass(frozen=True)
class Span:
    """What something took: on the clock, and of the processors' time in all threads.

    The latter is what can be compared on a machine that others use too, with one thread a process.
    """

    wall_s: float
    cpu_s: float

    def __sub__(self, other: "Span") -> "Span":
        return Span(self.wall_s - other.wall_s, self.cpu_s - other.cpu_s)


def now() -> Span:
    """Since some time that is the same all along."""
    return Span(time.perf_counter(), time.process_time())


@dataclass(frozen=True)
class Result:
    """`decode` runs from where all have their first token, over the rest of the output."""

    total: Span
    decode: Span
    computed_prompt_tokens: int

    @classmethod
    def of(cls, line: str) -> "Result":
        """From what was printed."""
        found = json.loads(line)
        return cls(Span(**found["total"]), Span(**found["decode"]), found["computed_prompt_tokens"])


def take_stdout() -> TextIO:
    """Where results go from now on. Whatever libraries print goes to stderr."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return results


def answer_tasks(answer: Callable[[Task], Result], results: TextIO) -> None:
    """Until stdin ends."""
    print("ready", file=results, flush=True)
    for line in sys.stdin:
        result = answer(Task(**json.loads(line)))
        print(json.dumps(asdict(result)), file=results, flush=True)
