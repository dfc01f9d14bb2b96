"""Workers that are given nothing while others can take it: they asked for a pause, or return."""

import random
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from radixgate.clock import Clock
from radixgate.policies.rehearsal import undrawn

# A worker that asks for longer is taken up again earlier: it may be wrong, and somebody must see.
LONGEST_REST_S = 30.0


class Spared:
    """A preference, never a ban: where there is nobody else, they are asked all the same."""

    def __init__(self, slow_start_s: float, clock: Clock, rng: random.Random) -> None:
        self._slow_start_s = slow_start_s
        self._clock = clock
        self._rng = rng
        # Both by worker, and to be read by others. Empty: nobody is to be spared.
        self.resting: dict[str, float] = {}  # until when
        self.warming: dict[str, float] = {}  # since it returned, at what time

    def change(self, slow_start_s: float) -> None:
        """Another time in which a returned worker comes to its full share."""
        self._slow_start_s = slow_start_s

    def rest(self, worker_id: str, seconds: float) -> None:
        """The worker takes nothing for so long, as it said (`Retry-After`) or as is known. A rest
        under way is never shortened: what ends later is still in its way."""
        until = self._clock.now() + min(seconds, LONGEST_REST_S)
        self.resting[worker_id] = max(until, self.resting.get(worker_id, until))

    def returned(self, worker_id: str) -> None:
        """It was down: its share of the requests grows from nothing to whole."""
        if self._slow_start_s > 0:
            self.warming[worker_id] = self._clock.now()

    def forget(self, worker_id: str) -> None:
        self.resting.pop(worker_id, None)
        self.warming.pop(worker_id, None)

    @contextmanager
    def asked_only(self) -> Iterator[None]:
        """What is drawn inside leaves no trace in the random source, nor do others' draws there."""
        with undrawn(self._rng):
            yield

    def rest_s(self, worker_id: str) -> float:
        """How long it still rests; 0: it does not."""
        return max(0.0, self.resting.get(worker_id, 0.0) - self._clock.now())

    def drawn(self) -> Collection[str]:
        """Whom to spare this time; for returning ones a draw. O(spared workers)."""
        if not self.resting and not self.warming:
            return ()
        now = self._clock.now()
        self.resting = {one: until for one, until in self.resting.items() if until > now}
        begun = now - self._slow_start_s
        self.warming = {one: at for one, at in self.warming.items() if at > begun}
        warming = (
            one
            for one, at in self.warming.items()
            if self._rng.random() * self._slow_start_s >= now - at
        )
        return {*self.resting, *warming}
