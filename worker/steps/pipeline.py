"""One pass being computed, and the one after it being planned meanwhile, if that is wanted."""

from collections.abc import Sequence
from dataclasses import dataclass

from radixgate.worker.schedule.chunks import Chunk
from radixgate.worker.steps.passes import Begun, Pass, Passes, PassOutcome


@dataclass(frozen=True, slots=True)
class Finished:
    """A pass that has been computed or has failed; without chunks: there was none."""

    chunks: Sequence[Chunk] = ()
    outcome: PassOutcome | None = None  # None: it failed
    error: Exception | None = None  # None: it did not


class Pipeline:
    """The order in which passes are planned, computed and heard of.

    A step is `plan`, `wait`, `go_on`, then what was waited for is worked in, then `sample`. With
    overlap `wait` is for the pass of the step before, which was computed while this one was
    planned, and this one is computed while that is worked in. Without, it is for this one.
    """

    def __init__(self, passes: Passes, *, overlap: bool) -> None:
        self._passes = passes
        self._overlap = overlap
        self._planned: Pass | None = None
        self._flying: Begun | None = None
        self._before: PassOutcome | None = None  # of the pass before the planned one; None: failed

    @property
    def empty(self) -> bool:
        """Nothing is planned, nothing is to be waited for."""
        return self._planned is None and self._flying is None

    def plan(self, chunks: Sequence[Chunk]) -> None:
        """Lay out the next pass; no chunks: there is none."""
        self._planned = self._passes.lay_out(chunks) if chunks else None

    def wait(self) -> Finished:
        """Until a pass is computed, if there is one to wait for."""
        if not self._overlap:
            self.go_on()
            self.sample()
        begun, self._flying, self._before = self._flying, None, None
        if begun is None:
            return Finished()
        try:
            self._before = begun.outcome()
        except Exception as exc:
            return Finished(begun.chunks, error=exc)
        return Finished(begun.chunks, self._before)

    def go_on(self) -> None:
        """Begin what is planned, but for those who have ended since, as the pass before failed."""
        planned, self._planned = self._planned, None
        if planned is None:
            return
        kept = [chunk for chunk in planned.chunks if chunk.holds]
        if len(kept) < len(planned.chunks):
            planned = self._passes.lay_out(kept)
        if kept:
            self._flying = self._passes.begin(planned, self._before)

    def sample(self) -> None:
        """The ids of all sequences stand as of the pass before the one that is computed."""
        if self._flying is not None:
            self._flying.sample()

    def drop(self) -> None:
        """Forget what is planned and what is computed; waits until nothing is."""
        flying, self._flying, self._planned = self._flying, None, None
        if flying is not None:
            flying.end()
