"""How far a run is, on stderr: a bar on a terminal, a line now and then elsewhere."""

import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from radixgate.clock import Clock
from radixgate.loadgen.exchange import Exchange

_LINE_EVERY_S = 5.0
_RECENT = 50  # requests that the shown TTFT is a mean of


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """A request as it ended, before anyone has read its answer: errors inside it are not seen."""

    failed: bool
    ttft_s: float | None  # to the first bytes of the body; None: none came


class Progress(Protocol):
    """Is told of each request once, as it ends."""

    def note(self, ended: RequestEnd) -> None: ...

    def close(self) -> None: ...


class NoProgress:
    """Says nothing."""

    def note(self, ended: RequestEnd) -> None:
        pass

    def close(self) -> None:
        pass


class RunSoFar:
    """The figures that are shown while a run goes on."""

    def __init__(self, total: int, clock: Clock) -> None:
        self.total = total
        self.done = 0
        self.errors = 0
        self._clock = clock
        self._start_s = clock.now()
        self._recent_ttfts_s: list[float] = []

    def note(self, ended: RequestEnd) -> None:
        self.done += 1
        self.errors += ended.failed
        if not ended.failed and ended.ttft_s is not None:
            self._recent_ttfts_s = [*self._recent_ttfts_s[-_RECENT + 1 :], ended.ttft_s]

    @property
    def elapsed_s(self) -> float:
        return self._clock.now() - self._start_s

    @property
    def text(self) -> str:
        rate = self.done / self.elapsed_s if self.elapsed_s > 0 else 0.0
        recent = self._recent_ttfts_s
        ttft = f"{1000 * sum(recent) / len(recent):.0f} ms" if recent else "-"
        return f"{rate:.1f} req/s  TTFT {ttft}  errors {self.errors}"


class LineProgress:
    """A line at most every five seconds, and one at the end."""

    def __init__(self, total: int, clock: Clock) -> None:
        self._tally = RunSoFar(total, clock)
        self._shown_s = 0.0

    def note(self, ended: RequestEnd) -> None:
        self._tally.note(ended)
        if self._tally.elapsed_s - self._shown_s >= _LINE_EVERY_S:
            self._show()

    def close(self) -> None:
        self._show()

    def _show(self) -> None:
        self._shown_s = self._tally.elapsed_s
        print(
            f"{self._tally.done}/{self._tally.total}  {self._tally.text}",
            file=sys.stderr,
            flush=True,
        )


class BarProgress:
    """A live bar with rate, TTFT and errors; needs rich (the `bench` extra)."""

    def __init__(self, total: int, clock: Clock) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._tally = RunSoFar(total, clock)
        self._bar = Bar(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            refresh_per_second=4,
        )
        self._task = self._bar.add_task("", total=total)
        self._bar.start()

    def note(self, ended: RequestEnd) -> None:
        self._tally.note(ended)
        self._bar.update(self._task, advance=1, description=self._tally.text)

    def close(self) -> None:
        self._bar.stop()


def ended_of(exchange: Exchange) -> RequestEnd:
    """What can be told without reading the answer."""
    pieces = exchange.pieces
    return RequestEnd(
        failed=exchange.status != 200 or exchange.broken is not None,
        ttft_s=pieces[0][0] - exchange.t_dispatch_s if pieces else None,
    )


def open_progress(total: int, clock: Clock, *, shown: bool, terminal: bool) -> Progress:
    """The progress that fits where stderr goes; without rich it is lines."""
    if not shown:
        return NoProgress()
    if terminal:
        with suppress(ModuleNotFoundError):
            return BarProgress(total, clock)
    return LineProgress(total, clock)
