"""`--decision-log`: what was chosen, on what grounds and how it went, on its way to a file."""

from radixgate.clock import Clock
from radixgate.fleet.decision_lines import encode_line
from radixgate.fleet.journal import Journal, Note
from radixgate.fleet.rule import Rule
from radixgate.gateway.observe.line_writer import LineWriter


class DecisionLog:
    """A fleet's journal, and the thread that writes it."""

    def __init__(self, path: str, rule: Rule, clock: Clock, *, run: bytes, epoch_s: float) -> None:
        """As `Journal`. Raises ConfigError if the file cannot be opened."""
        self._writer = LineWriter(path, heading=lambda: encode_line(self.journal.heading()))
        self.journal = Journal(self._put, clock, rule, run=run, epoch_s=epoch_s)

    @property
    def dropped(self) -> int:
        """Lines that are not in the file."""
        return self._writer.dropped

    def reopen(self) -> None:
        """The file was moved away; the next one begins with what the policy is."""
        self._writer.reopen()

    def close(self) -> None:
        """For at most two seconds."""
        self._writer.close()

    def _put(self, note: Note) -> None:
        self._writer.put(note, note.size)
