"""Experiments without a gateway: a clock that is told, records in memory, a stage that obeys."""

from collections.abc import Callable
from pathlib import Path

from clocks import FakeClock
from radixgate.analysis.experiments.records import (
    Arm,
    BlockEvent,
    Declaration,
    Guardrail,
    Record,
    RequestLine,
    Result,
    read_lines,
)
from radixgate.analysis.experiments.schedule import schedule_of
from radixgate.fleet.fleet import Ask
from radixgate.gateway.experiments.logbook import Logbook
from radixgate.gateway.experiments.record_file import RecordFile


def at_once(work: Callable[[], None]) -> None:
    """A thread, or the next turn of a loop, that is there at once."""
    work()


def declaration(**of: object) -> Declaration:
    """A switchback of two pairs of 100 s, unless something else is said."""
    usual: dict[str, object] = {
        "kind": "switchback",
        "arms": (Arm("A", "round_robin"), Arm("B", "random")),
        "began_at": 0.0,
        "seed": 7,
        "block_s": 100.0,
        "pairs": 2,
        "washout_s": 20.0,
        "hold_cap_s": 10.0,
    }
    return Declaration("try", **{**usual, **of})  # type: ignore[arg-type]


def logbook(folder: Path, clock: FakeClock, **of: object) -> Logbook:
    declared = declaration(**of)
    schedule = schedule_of(declared) if declared.kind == "switchback" else None
    file = RecordFile(folder / f"{declared.experiment}-1.jsonl", at_once, 1_000_000)
    return Logbook(declared, schedule, b"salt", file, clock)


def records(book: Logbook) -> list[Record]:
    """All that has been recorded."""
    book.file.flush()
    return list(read_lines(book.file.path.read_bytes().splitlines(keepends=True)))


def events(book: Logbook) -> list[tuple[str, int, str, float]]:
    """Moment, block, arm and time of each step."""
    return [
        (one.moment, one.block, one.arm, round(one.t_s, 6))
        for one in records(book)
        if isinstance(one, BlockEvent)
    ]


def question(session: str | None = None, tenant: str | None = None, tokens: int = 10) -> Ask:
    return Ask("toy", tokens, {}, session=session, tenant=tenant)


def line(arm: str = "B", at_s: float = 0.0, outcome: Result = "ok", **of: object) -> RequestLine:
    fields: dict[str, object] = {"block": 0, "washout": False, **of}
    return RequestLine(
        "try",
        arm=arm,
        t_dispatch_s=at_s,
        outcome=outcome,
        **fields,  # type: ignore[arg-type]
    )


def rail(metric: str, limit: float, *, relative: bool = False, fewest: int = 1) -> Guardrail:
    return Guardrail(f"{metric}={limit}", metric, limit, relative, fewest)


class FakeStage:
    """A fleet that drains when it is told."""

    def __init__(self) -> None:
        self.busy = 0
        self.flushes = 0
        self.flush_done = True
        self.turns: list[int] = []

    def in_flight(self) -> int:
        return self.busy

    def flush(self) -> None:
        self.flushes += 1

    def flushed(self) -> bool:
        return self.flush_done

    def turn_to(self, arm: int) -> int:
        self.turns.append(arm)
        return 40
