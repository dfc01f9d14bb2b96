"""How many requests in flight a fleet can use: found by doubling until it yields no more."""

from dataclasses import dataclass

_GAIN = 0.10
_ANSWERS_A_PLACE = 2
_FEWEST_ANSWERS = 16


@dataclass(frozen=True, slots=True)
class Step:
    """What a number of requests in flight yielded."""

    in_flight: int
    seconds: float
    answers: int
    tokens: int  # of the answers; 0: the server does not tell

    @property
    def rate(self) -> float:
        """Tokens a second, or answers where no tokens are told."""
        amount = self.tokens or self.answers
        return amount / self.seconds if self.seconds > 0 else 0.0


class Saturation:
    """Doubles the requests in flight as long as that yields 10 % more; then keeps the fewer.

    A step is measured from when as many answers have come as it has places, so that what was
    started under the step before is out of it, to `window_s` and two answers a place later.
    Refusals for overload halve the number and end the search.
    """

    def __init__(self, start: int, highest: int, *, window_s: float) -> None:
        self.in_flight = max(1, min(start, highest))
        self.steps: list[Step] = []
        self.settled = self.in_flight >= highest
        self.refused_at: int | None = None  # requests in flight when the server had enough
        self._highest = highest
        self._window_s = window_s
        self._since_s: float | None = None  # None: the step is warming up
        self._warm_answers = 0
        self._answers = 0
        self._tokens = 0

    @classmethod
    def fixed(cls, in_flight: int) -> "Saturation":
        """No search."""
        return cls(in_flight, in_flight, window_s=1.0)

    def note(self, now_s: float, tokens: int) -> None:
        """An answer came."""
        if self.settled:
            return
        if self._since_s is None:
            self._warm_answers += 1
            if self._warm_answers >= self.in_flight:
                self._since_s = now_s
            return
        self._answers += 1
        self._tokens += tokens
        wanted = max(_FEWEST_ANSWERS, _ANSWERS_A_PLACE * self.in_flight)
        if self._answers >= wanted and now_s - self._since_s >= self._window_s:
            self._finish(now_s - self._since_s)

    def note_refusal(self) -> None:
        """The server said that it has too much to do."""
        if not self.settled or self.refused_at is None:
            self.refused_at = self.in_flight
            self.in_flight = max(1, self.in_flight // 2)
        self.settled = True

    def table(self) -> str:
        """The steps so far, and what came of them."""
        lines = [f"{'in flight':>10}{'answers/s':>12}{'tokens/s':>12}{'gain':>8}"]
        before: Step | None = None
        for step in self.steps:
            gain = "" if before is None else f"{step.rate / before.rate - 1.0:+.0%}"
            tokens = f"{step.tokens / step.seconds:.1f}" if step.tokens else "-"
            lines.append(
                f"{step.in_flight:>10}{step.answers / step.seconds:>12.2f}{tokens:>12}{gain:>8}"
            )
            before = step
        if self.refused_at is not None:
            lines.append(f"refused at {self.refused_at} in flight")
        state = "keeps" if self.settled else "is trying"
        lines.append(f"{state} {self.in_flight} requests in flight")
        return "\n".join(lines)

    def _finish(self, seconds: float) -> None:
        step = Step(self.in_flight, seconds, self._answers, self._tokens)
        before = self.steps[-1] if self.steps else None
        self.steps.append(step)
        self._since_s, self._warm_answers, self._answers, self._tokens = None, 0, 0, 0
        if before is not None and step.rate < (1.0 + _GAIN) * before.rate:
            self.in_flight = before.in_flight
            self.settled = True
        elif self.in_flight >= self._highest:
            self.settled = True
        else:
            self.in_flight = min(2 * self.in_flight, self._highest)
