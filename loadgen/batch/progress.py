"""How far a batch is: rate, tokens, and when it will end, on stderr."""

import sys
from collections import deque
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Protocol

from radixgate.clock import Clock
from radixgate.loadgen.batch.answering import Answered

_LINE_EVERY_S = 5.0
_RECENT_S = 60.0
_RECENT = 10_000  # answers at most that the shown rate is of


class BatchTally:
    """The figures that are shown, over the last minute where they are rates."""

    def __init__(self, total: int, done: int, clock: Clock, deadline_s: float | None) -> None:
        self.total = total
        self.done = done
        self.failed = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self._clock = clock
        self._deadline_s = deadline_s
        self._start_s = clock.now()
        self._recent: deque[tuple[float, int]] = deque(maxlen=_RECENT)

    def note(self, answered: Answered) -> None:
        now = self._clock.now()
        self.done += 1
        self.failed += not answered.ok
        self.prompt_tokens += answered.prompt_tokens
        self.completion_tokens += answered.completion_tokens
        self._recent.append((now, answered.completion_tokens))
        while self._recent[0][0] < now - _RECENT_S:
            self._recent.popleft()

    @property
    def elapsed_s(self) -> float:
        return self._clock.now() - self._start_s

    def left_s(self) -> float | None:
        """Seconds to the expected end; None: nothing to tell it by."""
        rate, _ = self._rates()
        return (self.total - self.done) / rate if rate > 0 else None

    def text(self, in_flight: int, now: datetime) -> str:
        """One line; `now` is the time of day."""
        rate, tokens = self._rates()
        parts = [f"{rate:.2f} lines/s", f"{tokens:.0f} tokens/s", f"{in_flight} in flight"]
        parts.append(f"errors {self.failed}")
        left_s = self.left_s()
        if left_s is not None:
            parts.append(f"ends {now + timedelta(seconds=left_s):%H:%M:%S}")
            if self._deadline_s is not None:
                spare_s = self._deadline_s - self.elapsed_s - left_s
                late = "before" if spare_s >= 0 else "AFTER"
                parts.append(f"{abs(spare_s):.0f} s {late} the deadline")
        return "  ".join(parts)

    def _rates(self) -> tuple[float, float]:
        if not self._recent:
            return 0.0, 0.0
        seconds = max(1e-3, min(self.elapsed_s, _RECENT_S))
        if len(self._recent) == _RECENT:
            seconds = max(1e-3, self._clock.now() - self._recent[0][0])
        return len(self._recent) / seconds, sum(t for _, t in self._recent) / seconds


class BatchProgress(Protocol):
    """Is told after each answer."""

    def show(self, tally: BatchTally, in_flight: int) -> None: ...

    def close(self) -> None: ...


class Silence:
    """Says nothing."""

    def show(self, tally: BatchTally, in_flight: int) -> None:
        pass

    def close(self) -> None:
        pass


class Lines:
    """A line at most every five seconds."""

    def __init__(self) -> None:
        self._shown_s = 0.0

    def show(self, tally: BatchTally, in_flight: int) -> None:
        if tally.elapsed_s - self._shown_s < _LINE_EVERY_S and tally.done < tally.total:
            return
        self._shown_s = tally.elapsed_s
        text = tally.text(in_flight, datetime.now())
        print(f"{tally.done}/{tally.total}  {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class Bar:
    """A live bar; needs rich (the `bench` extra)."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            refresh_per_second=4,
        )
        self._task = self._bar.add_task("", total=total)
        self._bar.start()

    def show(self, tally: BatchTally, in_flight: int) -> None:
        text = tally.text(in_flight, datetime.now())
        self._bar.update(self._task, completed=tally.done, description=text)

    def close(self) -> None:
        self._bar.stop()


def open_batch_progress(total: int, *, shown: bool) -> BatchProgress:
    """What fits where stderr goes; without rich it is lines."""
    if not shown:
        return Silence()
    if sys.stderr.isatty():
        with suppress(ModuleNotFoundError):
            return Bar(total)
    return Lines()
