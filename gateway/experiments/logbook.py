"""What one experiment has recorded, in its file and in numbers."""

from collections import Counter

from radixgate.analysis.experiments.records import (
    Declaration,
    ExperimentEnd,
    Record,
    RequestLine,
    Result,
    Schedule,
    ShadowDecision,
)
from radixgate.clock import Clock
from radixgate.gateway.experiments.record_file import RecordFile


class Logbook:
    """Owns the experiment's clock: its zero is when the logbook was."""

    def __init__(
        self,
        declaration: Declaration,
        schedule: Schedule | None,
        salt: bytes,
        file: RecordFile,
        clock: Clock,
    ) -> None:
        """`schedule`: None for what has no blocks. `salt`: of its buckets, and never recorded."""
        self.declaration = declaration
        self.schedule = schedule
        self.salt = salt
        self.file = file
        self.requests: Counter[tuple[str, Result]] = Counter()  # by arm, of what counts
        self.washout: Counter[str] = Counter()  # by arm
        self._clock = clock
        self._began = clock.now()
        self._ended_s: float | None = None  # None: it has not
        file.put(declaration)
        if schedule is not None:
            file.put(schedule)

    @property
    def name(self) -> str:
        return self.declaration.experiment

    def now_s(self) -> float:
        """Since the experiment began."""
        return self.at_s(self._clock.now())

    def lasted_s(self) -> float:
        """Up to its last line; while it goes on, up to now."""
        return self.now_s() if self._ended_s is None else self._ended_s

    def at_s(self, now: float) -> float:
        """The same of a time of the clock."""
        return now - self._began

    def arm(self, index: int) -> str:
        return self.declaration.arms[index].name

    def note(self, record: Record) -> None:
        """Something happened to the experiment."""
        self.file.put(record)

    def note_request(self, line: RequestLine) -> None:
        if line.washout:
            self.washout[line.arm] += 1
        else:
            self.requests[line.arm, line.outcome] += 1
        self.file.put_line(line)

    def note_decision(self, line: ShadowDecision) -> None:
        self.file.put_line(line)

    def end(self, ended: ExperimentEnd) -> None:
        """The last line."""
        self._ended_s = ended.t_s
        self.file.put(ended)
        self.file.close()
